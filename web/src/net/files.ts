//! Files over HTTP: up with progress, down as blobs, because an image element cannot send the token. Nothing is retried
//! here; whoever asked knows whether it still matters.

import type { Attachment, RoomId, ServerLimits } from '../protocol/generated/chat';
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
export function upload({ token, room, file, onprogress, signal }: UploadRequest): Promise<Attachment> {
  return new Promise((resolve, reject) => {
    const sending = new XMLHttpRequest();
    sending.open('POST', `/api/v1/rooms/${room}/attachments?name=${encodeURIComponent(file.name)}`);
    sending.setRequestHeader('authorization', `Bearer ${token}`);
    sending.setRequestHeader('content-type', 'application/octet-stream');
    sending.responseType = 'json';
    sending.upload.onprogress = (event) => onprogress(event.total > 0 ? event.loaded / event.total : 0);
    sending.onload = () => {
      if (sending.status === 201) resolve(sending.response as Attachment);
      else reject(problemOf(sending.status, sending.statusText, sending.response));
    };
    sending.onerror = () => reject(new Unreachable('upload'));
    sending.onabort = () => reject(new DOMException('the upload was cancelled', 'AbortError'));
    signal.addEventListener('abort', () => sending.abort(), { once: true });
    sending.send(file);
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
