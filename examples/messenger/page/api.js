// Calls of the messenger's own API.

export class Refused extends Error {
  constructor(status, { error, field }) {
    super(error);
    this.status = status;
    this.field = field;
  }
}

export async function call(method, path, body) {
  const token = document.cookie.match(/(?:^|; )csrftoken=([^;]*)/)?.[1] ?? '';
  const headers = { 'content-type': 'application/json', 'x-csrftoken': token };
  const response = await fetch(`/api/${path}`, { method, headers, ...(body && { body: JSON.stringify(body) }) });
  const answer = await response.json().catch(() => ({ error: response.statusText }));
  if (!response.ok) throw new Refused(response.status, answer);
  return answer;
}
