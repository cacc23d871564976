// MD5All of the article on pipelines in Go: serial, parallel and bounded, over a real directory tree, compared with md5sum.
import { createHash } from 'node:crypto'
import { chmod, opendir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { md5Lines } from '@bullpen/tasks/files'
import { evilTree, md5Pipeline, unprivileged } from '@bullpen/tasks/files/fixtures'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { definePipeline, runPipeline } from './index.ts'

let tree: Awaited<ReturnType<typeof evilTree>>
beforeAll(async () => {
  tree = await evilTree()
})
afterAll(() => tree.remove())

/** Yields the path of every regular file. */
async function* walkFiles(root: string): AsyncGenerator<string> {
  for await (const entry of await opendir(root)) {
    const path = join(root, entry.name)
    if (entry.isDirectory()) yield* walkFiles(path)
    else if (entry.isFile()) yield path
  }
}

async function digest(path: string, { signal }: { readonly signal: AbortSignal }) {
  const data = await readFile(path, { signal })
  return { path, md5: createHash('md5').update(data).digest('hex') }
}

const md5All = (concurrency: number) =>
  definePipeline('md5-all')
    .source(walkFiles)
    .map(digest, { concurrency })
    .reduce((digests) => md5Lines(digests).join(''))

describe('MD5All', () => {
  test.each([
    ['serial', 1],
    ['parallel', Number.POSITIVE_INFINITY],
    ['bounded', 20],
  ])('%s prints what md5sum prints, sorted by path, for regular files only', async (_, concurrency) => {
    expect(await runPipeline(md5All(concurrency), tree.directory)).toBe(await md5Pipeline(tree.directory))
  })

  test('bounded holds at most as many files in memory as it has digesters', async () => {
    let [held, most] = [0, 0]
    const all = Promise.withResolvers<void>()
    const bounded = definePipeline('bounded')
      .source(walkFiles)
      .map(
        async (path, context) => {
          most = Math.max(most, ++held)
          if (held === 5) all.resolve()
          await all.promise
          const result = await digest(path, context)
          held--
          return result
        },
        { concurrency: 5 },
      )
      .fold((count) => count + 1, 0)
    expect(await runPipeline(bounded, tree.directory)).toBe(tree.files)
    expect(most).toBe(5)
  })

  test('ends the walk at the first error of a file', async () => {
    let walked = 0
    async function* walk(root: string) {
      for await (const path of walkFiles(root)) {
        walked++
        yield path
      }
    }
    const failing = definePipeline('failing')
      .source(walk)
      .map((path) => digest(join(path, 'missing'), { signal: new AbortController().signal }))
    await expect(runPipeline(failing, tree.directory)).rejects.toMatchObject({
      code: 'stage_failed',
      cause: { code: 'ENOTDIR' },
    })
    expect(walked).toBeLessThan(tree.files)
  })

  test('returns the error of the walk only after the results of the files that were found', async () => {
    const locked = join(tree.directory, 'dir', 'deep')
    await writeFile(join(locked, 'unreachable'), '')
    await chmod(locked, 0)
    const digested: string[] = []
    const pipeline = definePipeline('locked')
      .source(async function* (root: string) {
        yield join(root, 'plain.txt')
        yield* walkFiles(join(root, 'dir'))
      })
      .map(digest)
      .map(({ path }) => digested.push(path))
    try {
      await chmod(join(tree.directory, '..'), 0o755)
      await unprivileged(async () => {
        await expect(runPipeline(pipeline, tree.directory)).rejects.toMatchObject({
          code: 'source_failed',
          cause: { code: 'EACCES' },
        })
      })
    } finally {
      await chmod(locked, 0o755)
    }
    expect(digested[0]).toBe(join(tree.directory, 'plain.txt'))
  })
})
