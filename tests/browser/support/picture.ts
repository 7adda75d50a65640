//! Pictures for tests, as PNG files: noise, so that they weigh what their pixels do.

import { randomBytes } from 'node:crypto';
import { crc32, deflateSync } from 'node:zlib';

export interface NamedFile {
  name: string;
  mimeType: string;
  buffer: Buffer;
}

export function picture(name: string, width: number, height: number): NamedFile {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  // Eight bits each of red, green and blue.
  header.writeUInt8(8, 8);
  header.writeUInt8(2, 9);
  const rows = Array.from({ length: height }, () => Buffer.concat([Buffer.of(0), randomBytes(width * 3)]));
  const chunks = [chunk('IHDR', header), chunk('IDAT', deflateSync(Buffer.concat(rows), { level: 0 })), chunk('IEND', Buffer.alloc(0))];
  return { name, mimeType: 'image/png', buffer: Buffer.concat([Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'), ...chunks]) };
}

export function text(name: string, content: string): NamedFile {
  return { name, mimeType: 'text/plain', buffer: Buffer.from(content) };
}

function chunk(kind: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(kind, 'latin1'), data]);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(data.length);
  const check = Buffer.alloc(4);
  check.writeUInt32BE(crc32(body));
  return Buffer.concat([length, body, check]);
}
