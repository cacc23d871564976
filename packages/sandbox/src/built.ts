// Finds an isolate's entry module: a source file in the repository, or a compiled file next to this one in the published package.
import { extname } from 'node:path'

export function built(source: URL): URL {
  return new URL(source.href.replace(/\.ts$/, extname(import.meta.url)))
}
