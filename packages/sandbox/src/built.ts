// Finds a module that runs in an isolate: as source in the repository, compiled beside this one in what is published.
import { extname } from 'node:path'

export function built(source: URL): URL {
  return new URL(source.href.replace(/\.ts$/, extname(import.meta.url)))
}
