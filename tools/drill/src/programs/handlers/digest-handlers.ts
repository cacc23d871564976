// Handles the tasks of the pipeline that digests a tree. Each start and end of a digest is written to the ledger with the file's number.
import { join, sep } from 'node:path'
import { at, defineHandler, defineReduceHandler, defineSourceHandler } from '@bullpen/contract'
import { appendTo, type Effect, wallMs } from '../../ledger/effects.ts'
import { digestOf, filesBelow, listOf } from '../../pipeline/digest-stages.ts'
import { fileNumber } from '../../pipeline/file-tree.ts'
import { digestFile, sortByPath, walk } from '../catalogue.ts'
import { workerArguments } from '../worker-arguments.ts'

let append: ((effect: Effect) => void) | undefined

export const walkHandler = defineSourceHandler(
  walk,
  import.meta.url,
  async function* ({ directory, hasCursors }, _context, cursor) {
    const after = typeof cursor === 'string' ? cursor.split(sep) : []
    for await (const file of filesBelow(directory, after)) {
      const item = { path: join(directory, file) }
      yield hasCursors ? at(file, item) : item
    }
  },
)

export const digestHandler = defineHandler(
  digestFile,
  import.meta.url,
  async ({ id, input: { path }, fencingToken }) => {
    const { name, ledger } = workerArguments()
    append ??= appendTo(ledger)
    const write = append
    const note = (what: Effect['what']): void =>
      write({ what, id, fencingToken, worker: name, at: wallMs(), of: fileNumber(path) })
    note('start')
    const digest = await digestOf(path)
    note('end')
    return digest
  },
)

export const sortHandler = defineReduceHandler(sortByPath, import.meta.url, (digests) => listOf(digests))
