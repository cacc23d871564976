// Tests the handler of files.digest-tree against find, sort and md5sum.
import { chmod, mkdir, open, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { filesDigestTree } from '@bullpen/tasks'
import { evilTree, md5Pipeline, unprivileged } from '@bullpen/tasks/files/fixtures'
import { runTask } from '@bullpen/testkit'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { type FileAccess, openFileAccess } from '../resources/file-access.ts'
import digestTree from './files-digest-tree.ts'
import { ONCE, outputOf } from './output-of.fixture.ts'

let tree: Awaited<ReturnType<typeof evilTree>>
let files: FileAccess
beforeEach(async () => {
  tree = await evilTree()
  files = await openFileAccess({ roots: [tree.directory] })
})
afterEach(async () => {
  vi.useRealTimers()
  await tree.remove()
})

async function run(path: string, access = files) {
  return outputOf(await runTask(filesDigestTree, digestTree, { path }, { ...ONCE, resources: resources(access) }))
}

function resources(access: FileAccess) {
  return { files: access, receipts: { deliver: () => Promise.reject() } }
}

test.each(['', '/'])('the digest of a directory equals md5sum of md5sum, with DIR ending in "%s"', async (end) => {
  const path = tree.directory + end
  const output = await run(path)
  expect(output).toMatchObject({ files: tree.files, bytes: expect.any(Number) })
  expect(`${output.md5}  -\n`).toBe(await md5Pipeline(path, ' | md5sum'))
})

test('the digest of an empty directory is that of no input', async () => {
  expect(await run(join(tree.directory, 'empty-dir'))).toEqual({
    files: 0,
    bytes: 0,
    md5: 'd41d8cd98f00b204e9800998ecf8427e',
  })
})

test('a directory is read at most 20 files at a time, and progress is reported', async () => {
  for (let i = 0; i < 100; i++) await writeFile(join(tree.directory, `more-${i}`), '')
  let now = 0
  vi.spyOn(Date, 'now').mockImplementation(() => (now += 100))
  let running = 0
  let most = 0
  const counting: FileAccess = {
    ...files,
    async digest(path, signal) {
      most = Math.max(most, ++running)
      await new Promise(setImmediate)
      return files.digest(path, signal).finally(() => running--)
    },
  }
  const options = { ...ONCE, resources: resources(counting) }
  const { progress } = await runTask(filesDigestTree, digestTree, { path: tree.directory }, options)
  const fractions = progress.map(({ fraction }) => fraction)
  expect(most).toBe(20)
  expect(fractions.length).toBeGreaterThan(5)
  expect(fractions).toEqual(fractions.toSorted((a, b) => a - b))
  vi.restoreAllMocks()
})

test('a file name that is not UTF-8 is rejected and named', async () => {
  await writeFile(Buffer.concat([Buffer.from(`${tree.directory}/`), Buffer.from([0x66, 0xfc])]), '')
  await expect(run(tree.directory)).rejects.toMatchObject({
    code: 'name_not_utf8',
    retryable: false,
    message: expect.stringContaining('/f\\xfc'),
  })
})

test('a file that is removed between the walk and its digest is named', async () => {
  const losing: FileAccess = {
    ...files,
    async list(path, signal) {
      const listing = await files.list(path, signal)
      await rm(join(tree.directory, 'a.b'))
      return listing
    },
  }
  await expect(run(tree.directory, losing)).rejects.toMatchObject({
    code: 'not_found',
    message: expect.stringContaining('a.b'),
  })
})

test('an error of the walk is reported after all digests', async () => {
  await mkdir(join(tree.directory, 'closed'))
  await chmod(join(tree.directory, '..'), 0o755)
  await chmod(join(tree.directory, 'closed'), 0)
  const read: string[] = []
  const noting: FileAccess = {
    ...files,
    digest(path, signal) {
      read.push(path)
      return files.digest(path, signal)
    },
  }
  await unprivileged(() =>
    expect(run(tree.directory, noting)).rejects.toMatchObject({
      code: 'not_readable',
      message: expect.stringContaining('closed'),
    }),
  )
  expect(read.length).toBeGreaterThan(10)
})

test.each([
  ['plain.txt', 'not_a_directory'],
  ['nowhere', 'not_found'],
  ['link-to-dir', 'path_outside_roots'],
])('%s is rejected with %s', async (name, code) => {
  await expect(run(join(tree.directory, name))).rejects.toMatchObject({ code, retryable: false })
})

test('a cancelled task stops reading', async () => {
  const file = await open(join(tree.directory, 'sparse'), 'w')
  await file.truncate(2 ** 40)
  await file.close()
  const options = { ...ONCE, resources: resources(files), cancelAt: '50ms' } as const
  const stopped = await runTask(filesDigestTree, digestTree, { path: tree.directory }, options)
  expect(stopped).toMatchObject({ status: 'cancelled', late: [] })
})
