// Tests the walk and the list against find, sort and md5sum.
import { createHash } from 'node:crypto'
import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterEach, describe, expect, test } from 'vitest'
import { evilTree, md5Pipeline, unprivileged } from './fixtures/index.ts'
import { escapeBytes, forEachBounded, joinPath, listFiles, md5Lines, pathText } from './index.ts'

const cleanUps: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0)) await cleanUp()
})

async function tree() {
  const created = await evilTree()
  cleanUps.push(created.remove)
  return created
}

async function digests(directory: string, names: readonly Buffer[]) {
  return Promise.all(
    names.map(async (name) => {
      const path = joinPath(directory, name.toString())
      return {
        path,
        md5: createHash('md5')
          .update(await readFile(path))
          .digest('hex'),
      }
    }),
  )
}

describe('the list', () => {
  test.each(['', '/', '//'])(
    'equals the output of md5sum for difficult names, with DIR ending in "%s"',
    async (end) => {
      const { directory, files } = await tree()
      const listing = await listFiles(directory)
      expect(listing).toMatchObject({ error: undefined, files: { length: files } })
      const lines = md5Lines(await digests(directory + end, listing.files))
      expect(lines.join('')).toBe(await md5Pipeline(directory + end))
    },
  )

  test('equals the output of md5sum for generated names', async () => {
    const { directory } = await tree()
    const character = fc.oneof(
      fc.constantFrom('\\', '\n', '\r', 'n', 'r', ' ', '.', '-', '/', '\uffff', '\ue000', '\u{10000}', '\u{10ffff}'),
      fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }),
    )
    const name = fc
      .string({ unit: character, minLength: 1, maxLength: 30 })
      .filter((text) => !text.includes('\0') && text.isWellFormed())
    const names = fc.sample(name, { numRuns: 300, seed: 42 })
    for (const [i, text] of names.entries()) {
      const path = join(directory, `${i % 7}`, text)
      await mkdir(join(path, '..'), { recursive: true }).catch(() => undefined)
      await writeFile(path, text).catch(() => undefined)
    }
    const listing = await listFiles(directory)
    expect(listing.files.length).toBeGreaterThan(250)
    expect(md5Lines(await digests(directory, listing.files)).join('')).toBe(await md5Pipeline(directory))
  })

  test('is empty without files', () => {
    expect(md5Lines([])).toEqual([])
  })
})

describe('the walk', () => {
  test('leaves out excluded names directly below the directory, and only there', async () => {
    const { directory } = await tree()
    await mkdir(join(directory, 'keep'))
    await writeFile(join(directory, 'keep/plain.txt'), '')
    const { files } = await listFiles(directory, { exclude: new Set(['plain.txt', 'dir']) })
    const names = files.map(String)
    expect(names).toContain('keep/plain.txt')
    expect(names).not.toContain('plain.txt')
    expect(names.filter((name) => name.startsWith('dir/'))).toEqual([])
  })

  test('finds names that are not UTF-8', async () => {
    const { directory } = await tree()
    await writeFile(Buffer.concat([Buffer.from(`${directory}/dir/b`), Buffer.from([0xe9, 0x5c, 0x0a])]), '')
    const { files } = await listFiles(directory)
    const notUtf8 = files.filter((file) => pathText(file) === undefined)
    expect(notUtf8.map(escapeBytes)).toEqual(['dir/b\\xe9\\\\\\x0a'])
  })

  test('reports a missing directory', async () => {
    const { directory } = await tree()
    expect(await listFiles(join(directory, 'nowhere'))).toMatchObject({ files: [], error: { code: 'ENOENT' } })
  })

  test('ends at the first directory that it cannot read', async () => {
    const { directory } = await tree()
    await chmod(join(directory, '..'), 0o755)
    await chmod(join(directory, 'dir/deep'), 0)
    const { error } = await unprivileged(() => listFiles(directory))
    await chmod(join(directory, 'dir/deep'), 0o755)
    expect(error).toMatchObject({ code: 'EACCES', message: expect.stringContaining('dir/deep') })
  })

  test('ends when its signal aborts', async () => {
    const { directory } = await tree()
    const reason = new Error('enough')
    await expect(listFiles(directory, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason)
  })
})

describe('bounded parallelism', () => {
  test('runs every item, never more than the limit at a time, and reaches the limit', async () => {
    const done = new Set<number>()
    let running = 0
    let maxRunning = 0
    await forEachBounded(Array(100).keys(), 7, async (item) => {
      maxRunning = Math.max(maxRunning, ++running)
      await new Promise(setImmediate)
      running--
      done.add(item)
    })
    expect({ maxRunning, done: done.size }).toEqual({ maxRunning: 7, done: 100 })
  })

  test('after the first failure starts nothing more, aborts the others, waits for them and throws it', async () => {
    const started: number[] = []
    const ended: number[] = []
    const run = forEachBounded(Array(100).keys(), 3, async (item, signal) => {
      started.push(item)
      if (item === 1) throw new Error('first')
      await new Promise((resolve) => signal.addEventListener('abort', resolve))
      await new Promise(setImmediate)
      ended.push(item)
      throw new Error('second')
    })
    await expect(run).rejects.toThrow('first')
    expect({ started, ended }).toEqual({ started: [0, 1, 2], ended: [0, 2] })
  })

  test('ends with the reason of the outer signal', async () => {
    const outer = new AbortController()
    const run = forEachBounded([1], 1, async () => outer.abort(new Error('drain')), outer.signal)
    await expect(run).rejects.toThrow('drain')
  })
})
