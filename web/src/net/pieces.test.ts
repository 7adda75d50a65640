//! Promises of a file on its way in pieces.

import { afterEach, describe, expect, it, vi } from 'vitest';

import { Pace } from '../model/pace';
import { UploadInPieces } from './pieces';

afterEach(() => vi.unstubAllGlobals());

describe('an upload that is given up', () => {
  it('is_taken_back_from_the_server_though_it_had_not_answered_yet', async () => {
    const asked: string[] = [];
    let answer = (_response: Response) => {};
    vi.stubGlobal('fetch', (path: string, { method }: RequestInit) => {
      asked.push(`${method} ${path}`);
      if (method === 'DELETE') return Promise.resolve(new Response(null, { status: 204 }));
      return new Promise<Response>((resolve) => (answer = resolve));
    });
    const stop = new AbortController();
    const file = new File([new Uint8Array(10_000_000)], 'large.bin');
    const upload = new UploadInPieces({ token: 't', room: 'r', file, onprogress: () => {}, signal: stop.signal }, new Pace());
    const sent = upload.send();
    await vi.waitFor(() => expect(asked).toHaveLength(1));
    stop.abort();
    answer(Response.json({ id: 'u', offset: 0, size: file.size }));
    await expect(sent).rejects.toThrow();
    expect(asked).toEqual(['POST /api/v1/rooms/r/uploads?name=large.bin&size=10000000', 'DELETE /api/v1/uploads/u']);
  });
});
