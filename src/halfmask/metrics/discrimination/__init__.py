"""The discrimination rate: how far what somebody knows shrinks the set of possible answers."""
