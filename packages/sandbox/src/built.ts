// Finds the entry module of an isolate. It is source in the repository, and compiled beside this file in the published package.
import { extname } from 'node:path'

export function built(source: URL): URL {
  return new URL(source.href.replace(/\.ts$/, extname(import.meta.url)))
}
