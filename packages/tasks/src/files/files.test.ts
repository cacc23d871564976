// Tests the walk and the list against find, sort and md5sum.
import { createHash } from 'node:crypto'
import { chmod, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterEach, describe, expect, test } from 'vitest'
import { evilTree, md5Pipeline, unprivileged } from './fixtures/index.ts'
import { escapeBytes, joinPath, md5Lines, pathText, walkFiles } from './index.ts'

const cleanUps: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0)) await cleanUp()
})

async function tree() {
  const created = await evilTree()
  cleanUps.push(created.remove)
  return created
}

/** Returns the paths that a walk yields. */
async function walk(...args: Parameters<typeof walkFiles>): Promise<Buffer[]> {
  const found: Buffer[] = []
  for await (const path of walkFiles(...args)) found.push(path)
  return found
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
      const found = await walk(directory)
      expect(found).toHaveLength(files)
      const lines = md5Lines(await digests(directory + end, found))
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
    const found = await walk(directory)
    expect(found.length).toBeGreaterThan(250)
    expect(found).toEqual(found.toSorted(Buffer.compare))
    expect(md5Lines(await digests(directory, found)).join('')).toBe(await md5Pipeline(directory))
  })

  test('is empty without files', () => {
    expect(md5Lines([])).toEqual([])
  })
})

describe('the walk', () => {
  test('finds files in the order in which sort sorts their paths', async () => {
    const { directory } = await tree()
    const names = (await walk(directory)).map(String)
    const siblings = ['dir-', 'dir.txt', 'dir/deep/er/still', 'dir/inside', 'dir0']
    expect(names.filter((name) => name.startsWith('dir'))).toEqual(siblings)
  })

  test('continues after any of its files as if it had not been interrupted', async () => {
    const { directory } = await tree()
    const names = (await walk(directory)).map(String)
    for (const [i, after] of names.entries()) {
      expect((await walk(directory, { after })).map(String), after).toEqual(names.slice(i + 1))
    }
  })

  test('continues after a file that was removed, and finds files that were added behind it', async () => {
    const { directory } = await tree()
    await rm(join(directory, 'dir/inside'))
    await writeFile(join(directory, 'dir/before'), '')
    await writeFile(join(directory, 'dir/insidf'), '')
    const names = (await walk(directory, { after: 'dir/inside' })).map(String)
    expect(names.slice(0, 2)).toEqual(['dir/insidf', 'dir0'])
    expect(names).not.toContain('dir/before')
  })

  test('reads a directory only when it comes to its files', async () => {
    const { directory } = await tree()
    const names: string[] = []
    for await (const path of walkFiles(directory)) {
      if (names.length === 0) await writeFile(join(directory, 'dir/later'), '')
      names.push(String(path))
    }
    expect(names).toContain('dir/later')
  })

  test('leaves out excluded names directly below the directory, and only there', async () => {
    const { directory } = await tree()
    await mkdir(join(directory, 'keep'))
    await writeFile(join(directory, 'keep/plain.txt'), '')
    const names = (await walk(directory, { exclude: ['plain.txt', 'dir'] })).map(String)
    expect(names).toContain('keep/plain.txt')
    expect(names).not.toContain('plain.txt')
    expect(names.filter((name) => name.startsWith('dir/'))).toEqual([])
  })

  test('finds names that are not UTF-8', async () => {
    const { directory } = await tree()
    await writeFile(Buffer.concat([Buffer.from(`${directory}/dir/b`), Buffer.from([0xe9, 0x5c, 0x0a])]), '')
    const notUtf8 = (await walk(directory)).filter((file) => pathText(file) === undefined)
    expect(notUtf8.map(escapeBytes)).toEqual(['dir/b\\xe9\\\\\\x0a'])
  })

  test('of a missing directory is rejected', async () => {
    const { directory } = await tree()
    await expect(walk(join(directory, 'nowhere'))).rejects.toMatchObject({ code: 'ENOENT' })
  })

  test('yields the files before the first directory that it cannot read, and then throws', async () => {
    const { directory } = await tree()
    await chmod(join(directory, '..'), 0o755)
    await chmod(join(directory, 'dir/deep'), 0)
    const found: string[] = []
    await unprivileged(async () => {
      const error = await (async () => {
        for await (const file of walkFiles(directory)) found.push(String(file))
      })().catch((thrown: unknown) => thrown)
      expect(error).toMatchObject({ code: 'EACCES', message: expect.stringContaining('dir/deep') })
    })
    await chmod(join(directory, 'dir/deep'), 0o755)
    expect(found.at(-1)).toBe('dir.txt')
  })

  test('ends when its signal aborts', async () => {
    const { directory } = await tree()
    const reason = new Error('enough')
    await expect(walk(directory, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason)
  })
})
