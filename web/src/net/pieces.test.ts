//! Promises of a file on its way in pieces.

import { afterEach, describe, expect, it, vi } from 'vitest';

import { Pace } from '../model/pace';
import { Unreachable } from './http';
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

describe('a server that waited in vain for what was sent', () => {
  const late = { status: 400, response: { title: 'bad request', detail: 'less than 1024 bytes of it came in a second' } };
  const full = { status: 400, response: { title: 'limit exceeded', detail: 'more than 100 of your files wait to be sent' } };

  /** Answers each body with the next of these. */
  function answerWith(...answers: { status: number; response: unknown }[]): string[] {
    const sent: string[] = [];
    vi.stubGlobal('XMLHttpRequest', class {
      upload = {};
      status = 0;
      response: unknown;
      onload = () => {};
      onloadend = () => {};
      open(method: string, path: string) {
        sent.push(`${method} ${path}`);
      }
      setRequestHeader() {}
      send() {
        Object.assign(this, answers.shift() ?? { status: 500 });
        queueMicrotask(() => [this.onload, this.onloadend].forEach((tell) => tell()));
      }
    });
    return sent;
  }

  const upload = (bytes: number) => {
    const file = new File([new Uint8Array(bytes)], 'file.bin');
    return new UploadInPieces({ token: 't', room: 'r', file, onprogress: () => {}, signal: new AbortController().signal }, new Pace());
  };

  it('gets_a_small_file_once_more', async () => {
    const attachment = { id: 'a' };
    const sent = answerWith(late, { status: 201, response: attachment });
    const small = upload(5_000);
    await expect(small.send()).rejects.toBeInstanceOf(Unreachable);
    expect(await small.send()).toEqual(attachment);
    expect(sent).toHaveLength(2);
  });

  it('gets_smaller_pieces_and_then_the_smallest_again_and_again', async () => {
    vi.stubGlobal('fetch', () => Promise.resolve(Response.json({ id: 'u', offset: 0, size: 100_000 })));
    answerWith(...Array.from({ length: 5 }, () => late), { status: 200, response: { id: 'u', offset: 100_000, attachment: { id: 'a' } } });
    const large = upload(100_000);
    for (let late = 0; late < 4; late += 1) await expect(large.send()).rejects.toBeInstanceOf(Unreachable);
    expect(await large.send()).toEqual({ id: 'a' });
  });

  it('is_told_from_one_that_refuses_a_file', async () => {
    answerWith(full);
    await expect(upload(5_000).send()).rejects.toMatchObject({ title: 'limit exceeded' });
  });
});
