"""Personal epsilon: every person's own budget, honored at once.

What people ask for is taken as public: it must not depend on what their rows say.
"""
