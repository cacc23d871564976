// Tests the handler of files.walk on a real directory: which files it finds, where it continues, and what it rejects.
import { chmod, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { TaskContext } from '@bullpen/contract'
import { unmarked } from '@bullpen/contract/internal'
import type { filesWalk } from '@bullpen/tasks'
import { evilTree, unprivileged } from '@bullpen/tasks/files/fixtures'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { openFileAccess } from '../resources/file-access.ts'
import type { WorkerResources } from '../resources/index.ts'
import handler from './files-walk.ts'
import { resourcesWith } from './resources.fixture.ts'

let tree: Awaited<ReturnType<typeof evilTree>>
beforeEach(async () => {
  tree = await evilTree()
})
afterEach(() => tree.remove())

interface Options {
  readonly exclude?: string[]
  readonly cursor?: unknown
  readonly signal?: AbortSignal
  readonly onItem?: () => void
}

type Context = TaskContext<typeof filesWalk, WorkerResources>

/** Returns the paths that a walk yields, each with its cursor. `onItem` is called for each of them as it arrives. */
async function walk(directory: string, { exclude = [], cursor, signal, onItem }: Options = {}) {
  const resources = resourcesWith({ files: await openFileAccess({ roots: [tree.directory] }) })
  const context = { resources, signal: signal ?? new AbortController().signal }
  const items: { readonly path: string; readonly cursor: unknown }[] = []
  const walked = handler.pipeline.run({ directory, exclude }, context as Context, cursor)
  for await (const yielded of walked) {
    const { item, cursor } = unmarked(yielded)
    items.push({ path: item.path, cursor })
    onItem?.()
  }
  return items
}

async function paths(...args: Parameters<typeof walk>): Promise<string[]> {
  return (await walk(...args)).map(({ path }) => path)
}

test('every regular file is found once, and begins with the directory as it was given', async () => {
  for (const directory of [tree.directory, `${tree.directory}/`]) {
    const found = await paths(directory)
    expect(new Set(found).size).toBe(tree.files)
    expect(found).toContain(`${tree.directory}/dir/inside`)
    expect(found.filter((path) => path.includes('link'))).toEqual([])
  }
})

test('a walk continues after the cursor of any item', async () => {
  const items = await walk(tree.directory)
  const found = items.map(({ path }) => path)
  for (const [i, { cursor }] of items.entries()) {
    expect(await paths(tree.directory, { cursor })).toEqual(found.slice(i + 1))
  }
})

test('excluded names are left out', async () => {
  expect(await paths(tree.directory, { exclude: ['dir'] })).not.toContain(`${tree.directory}/dir/inside`)
})

test('a file name that is not UTF-8 is rejected and named, after the files before it', async () => {
  await writeFile(Buffer.concat([Buffer.from(`${tree.directory}/f`), Buffer.from([0xfc])]), '')
  let found = 0
  await expect(walk(tree.directory, { onItem: () => found++ })).rejects.toMatchObject({
    code: 'name_not_utf8',
    retryable: false,
    message: expect.stringContaining('/f\\xfc'),
  })
  expect(found).toBeGreaterThan(10)
})

test('a directory that cannot be read is named', async () => {
  await mkdir(join(tree.directory, 'closed'))
  await chmod(join(tree.directory, '..'), 0o755)
  await chmod(join(tree.directory, 'closed'), 0)
  const rejected = { code: 'not_readable', retryable: false, message: expect.stringContaining('closed') }
  await unprivileged(() => expect(paths(tree.directory)).rejects.toMatchObject(rejected))
})

test.each([
  ['plain.txt', 'not_a_directory'],
  ['nowhere', 'not_found'],
  ['link-to-dir', 'path_outside_roots'],
  ['..', 'path_outside_roots'],
])('%s is rejected with %s', async (name, code) => {
  await expect(paths(join(tree.directory, name))).rejects.toMatchObject({ code, retryable: false })
})

test('a walk that is cancelled ends with the reason', async () => {
  const reason = new Error('cancelled')
  await expect(paths(tree.directory, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason)
})
