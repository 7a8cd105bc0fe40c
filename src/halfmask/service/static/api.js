// Talks to the service: the token travels in a header, long steps are waited for.
const KEY = "halfmask-token";

function token() {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given) {
    sessionStorage.setItem(KEY, given);
    history.replaceState(null, "", location.pathname);
  }
  return sessionStorage.getItem(KEY) || "";
}

const secret = token();

export async function ask(method, path, body, signal) {
  const headers = { "X-Halfmask-Token": secret };
  const raw = body instanceof Blob;
  if (body !== undefined && !raw) headers["Content-Type"] = "application/json";
  let reply;
  try {
    reply = await fetch(path, {
      method,
      headers,
      body: body === undefined || raw ? body : JSON.stringify(body),
      credentials: "omit",
      redirect: "error",
      signal,
    });
  } catch {
    if (signal?.aborted) throw { code: "service.cancelled", message: "Sending was cancelled; the former table stands." };
    throw { code: "service", message: "halfmask serve does not answer: is it still running?" };
  }
  const found = await reply.json();
  if (!found.ok) throw found;
  return found;
}

// Wait for a job and give its document; `tell` hears how long it has taken.
export async function settled(job, tell) {
  let now = job;
  while (now.state === "working") {
    tell(now);
    now = (await ask("GET", `/api/jobs/${now.id}?wait=2`)).job;
  }
  if (!now.result.ok) throw now.result;
  return now.result;
}

export async function link(file, download) {
  return (await ask("POST", "/api/links", { file, download })).url;
}
