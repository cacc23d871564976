import { defineHandler, defineReduceHandler, defineSourceHandler } from '@bullpen/contract'
import { digest, list, walk } from './catalogue.ts'
import { digestFile, filesBelow, linesOf } from './files.ts'

export const handlers = {
  'files.walk': defineSourceHandler(walk, import.meta.url, async function* ({ directory }) {
    for await (const path of filesBelow(directory)) yield { path }
  }),
  'files.digest': defineHandler(digest, import.meta.url, ({ input, signal }) => digestFile(input.path, { signal })),
  'files.list': defineReduceHandler(list, import.meta.url, linesOf),
}
