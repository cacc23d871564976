// Tests the handler of files.sort-by-path: the order of its files, and what it sums up.
import type { TaskContext } from '@bullpen/contract'
import type { filesSortByPath } from '@bullpen/tasks'
import { expect, test } from 'vitest'
import handler from './files-sort-by-path.ts'

const md5 = 'd41d8cd98f00b204e9800998ecf8427e'
const digest = (path: string, worker = 'a:1', starts = 1) => ({ path, md5, bytes: 2, worker, starts })

const sort = (directory: string, digests: readonly ReturnType<typeof digest>[]) =>
  handler.pipeline.run(digests, {
    input: { directory, exclude: [] },
  } as unknown as TaskContext<typeof filesSortByPath>)

test.each(['/srv', '/srv/', '/'])('paths are relative to %s, in the order of their bytes', async (directory) => {
  const names = ['dir0', '\u{1f600}', 'dir/a', '\uffee', 'dir-']
  const { files } = await sort(
    directory,
    names.map((name) => digest(directory.endsWith('/') ? directory + name : `${directory}/${name}`)),
  )
  expect(files).toEqual(['dir-', 'dir/a', 'dir0', '\uffee', '\u{1f600}'].map((path) => ({ path, md5 })))
})

test('the sizes are added, and the workers and the tasks that were started again are counted', async () => {
  const digests = [digest('/1', 'b:2'), digest('/2', 'a:1', 3), digest('/3', 'b:2', 2)]
  expect(await sort('/', digests)).toMatchObject({ bytes: 6, workers: ['a:1', 'b:2'], startedAgain: 2 })
  expect(await sort('/', [])).toEqual({ files: [], bytes: 0, workers: [], startedAgain: 0 })
})
