//! French puts a space before ? ! ; : and inside its quotation marks. A line must not end there, so these are the spaces that
//! do not break; sentences are written with plain ones, which a reader of the source can tell apart.

const NARROW = '\u202f';
const WIDE = '\u00a0';

/** A sentence, or all sentences of an object, also those that functions make. */
export function withFrenchSpaces<T>(sentences: T): T {
  return spaced(sentences) as T;
}

function spaced(value: unknown): unknown {
  if (typeof value === 'string') {
    return value.replace(/ ([?!;])/g, `${NARROW}$1`).replace(/ :/g, `${WIDE}:`).replace(/« /g, `«${WIDE}`).replace(/ »/g, `${WIDE}»`);
  }
  if (typeof value === 'function') return (...of: unknown[]) => spaced((value as (...of: unknown[]) => unknown)(...of));
  if (Array.isArray(value)) return value.map(spaced);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, spaced(part)]));
}
