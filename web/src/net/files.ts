//! Files over HTTP: up with progress, down as blobs, because an image element cannot send the token. Nothing is retried
//! here; whoever asked knows whether it still matters.

import type { RoomId, ServerLimits } from '../protocol/generated/chat';
import { problemOf, request, Unreachable } from './http';

export interface UploadRequest {
  token: string;
  room: RoomId;
  file: File;
  /** How much has left this device, 0 to 1. */
  onprogress: (part: number) => void;
  signal: AbortSignal;
}

/** `fetch` cannot tell how much of a body has been sent; this older interface can. */
export function sendBytes<T>(
  method: string, path: string, bytes: Blob, { token, signal }: Pick<UploadRequest, 'token' | 'signal'>, onsent: (bytes: number) => void,
): Promise<T> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const sending = new XMLHttpRequest();
    const stop = () => sending.abort();
    sending.open(method, path);
    sending.setRequestHeader('authorization', `Bearer ${token}`);
    sending.setRequestHeader('content-type', 'application/octet-stream');
    sending.responseType = 'json';
    sending.upload.onprogress = (event) => onsent(event.loaded);
    sending.onload = () => {
      if (sending.status >= 200 && sending.status < 300) resolve(sending.response as T);
      else reject(problemOf(sending.status, sending.statusText, sending.response));
    };
    sending.onerror = () => reject(new Unreachable('upload'));
    sending.onabort = () => reject(new DOMException('the upload was cancelled', 'AbortError'));
    sending.onloadend = () => signal.removeEventListener('abort', stop);
    signal.addEventListener('abort', stop, { once: true });
    sending.send(bytes);
  });
}

export function limitsOf(token: string): Promise<ServerLimits> {
  return request<ServerLimits>('GET', '/api/v1/limits', { token });
}

/** The bytes of an own address of this server; any other is not asked. */
export async function download(token: string, url: string): Promise<Blob> {
  if (!isOwn(url)) throw new Error('not a file of this server');
  const response = await fetch(url, { headers: { authorization: `Bearer ${token}` }, credentials: 'omit' }).catch((cause: unknown) => {
    throw new Unreachable(cause);
  });
  if (!response.ok) throw problemOf(response.status, response.statusText, await response.json().catch(() => undefined));
  return response.blob();
}

function isOwn(url: string): boolean {
  return url.startsWith('/api/v1/attachments/');
}
