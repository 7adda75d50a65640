//! What somebody waits for comes in few files: the first script, the client, the chat. The page names what its first script
//! is about to load, so that the browser fetches all of it at once.

import type { HtmlTagDescriptor, Plugin, Rolldown } from 'vite';

const FIRST = /\/src\/main\.ts$/;
const STARTED = /\/src\/start\.ts$/;
/** The files after the first, each with all that its first module needs and the files before it lack. */
const FILES = [['client', STARTED], ['chat', /\/src\/ui\/Shell\.svelte$/]] as const;

type Chunk = Rolldown.OutputChunk;
type Graph = Pick<Rolldown.PluginContext, 'getModuleInfo' | 'getModuleIds'>;

/** Modules by the file in which they come, once the graph is known. */
let files = new Map<string, string>();

/** For `output.codeSplitting`. */
export const inFiles = { groups: [{ name: (id: string) => files.get(id) || null, includeDependenciesRecursively: false }] };

export function preload(): Plugin {
  return {
    name: 'preload',
    apply: 'build',
    buildEnd() {
      files = assign(this);
    },
    transformIndexHtml: {
      order: 'post',
      handler(html, { bundle }) {
        const chunks = new Map<string, Chunk>();
        for (const part of Object.values(bundle ?? {})) if (part.type === 'chunk') chunks.set(part.fileName, part);
        const start = [...chunks.values()].find(({ moduleIds }) => moduleIds.some((id) => STARTED.test(id)));
        if (!start) throw new Error('nothing in the build starts the client');
        const wanted = withImports(start, chunks);
        const styles = wanted.flatMap((chunk) => [...(chunk.viteMetadata?.importedCss ?? [])]);
        return [
          ...styles.map((name) => link({ rel: 'stylesheet', href: `/${name}` })),
          ...wanted.map(({ fileName }) => link({ rel: 'modulepreload', href: `/${fileName}` })),
        ].filter(({ attrs }) => !html.includes(String(attrs?.['href'])));
      },
    },
  };
}

/** What is in no file is fetched when it is wanted. */
function assign(graph: Graph): Map<string, string> {
  const files = new Map<string, string>();
  const all = [...graph.getModuleIds()];
  for (const [file, first] of [['', FIRST], ...FILES] as const) {
    const begin = all.find((id) => first.test(id));
    for (const id of begin === undefined ? [] : imported(begin, graph)) if (!files.has(id)) files.set(id, file);
  }
  return files;
}

function imported(id: string, graph: Graph, found = new Set<string>()): Set<string> {
  found.add(id);
  for (const next of graph.getModuleInfo(id)?.importedIds ?? []) if (!found.has(next)) imported(next, graph, found);
  return found;
}

/** A chunk and all that it needs to run. */
function withImports(chunk: Chunk, chunks: ReadonlyMap<string, Chunk>, found = new Set<Chunk>()): Chunk[] {
  found.add(chunk);
  for (const name of chunk.imports) {
    const needed = chunks.get(name);
    if (needed && !found.has(needed)) withImports(needed, chunks, found);
  }
  return [...found];
}

function link(attrs: Record<string, string>): HtmlTagDescriptor {
  return { tag: 'link', attrs: { crossorigin: true, ...attrs }, injectTo: 'head' };
}
