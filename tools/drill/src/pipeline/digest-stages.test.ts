// Tests the walk over a tree, from its beginning and from a cursor, and that the list is what md5sum prints.
import { join } from 'node:path'
import { md5Pipeline } from '@bullpen/tasks/files/fixtures'
import { expect, it, onTestFinished } from 'vitest'
import { digestOf, filesBelow, listOf } from './digest-stages.ts'
import { createFileTree, fileNumber } from './file-tree.ts'

const FILES = 205

async function filesOf(directory: string, after?: readonly string[]): Promise<readonly string[]> {
  const files: string[] = []
  for await (const file of filesBelow(directory, after)) files.push(file)
  return files
}

it('the walk yields all files in the order of their paths, or those after a path, and the list equals that of md5sum', async () => {
  const { directory, remove } = createFileTree(FILES, 1)
  onTestFinished(remove)
  const all = await filesOf(directory)
  expect(all.map(fileNumber)).toEqual([...Array(FILES).keys()])
  for (const at of [0, 99, 100, 204]) {
    const rest = await filesOf(directory, all[at]?.split('/'))
    expect(rest).toEqual(all.slice(at + 1))
  }
  const digests = await Promise.all(all.map((file) => digestOf(join(directory, file))))
  expect(listOf(digests)).toEqual({ text: await md5Pipeline(directory), misordered: 0 })
  expect(listOf(digests.toReversed()).misordered).toBe(FILES - 1)
})
