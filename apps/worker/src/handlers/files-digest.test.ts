// Tests the handler of files.digest on real files: which files it reads and which it rejects.
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { chmod, mkdir, open, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { filesDigest } from '@bullpen/tasks'
import { evilTree, unprivileged } from '@bullpen/tasks/files/fixtures'
import { runTask } from '@bullpen/testkit'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { openFileAccess } from '../resources/file-access.ts'
import digest from './files-digest.ts'
import { ONCE, outputOf } from './output-of.fixture.ts'
import { resourcesWith, WORKER } from './resources.fixture.ts'

let tree: Awaited<ReturnType<typeof evilTree>>
beforeEach(async () => {
  tree = await evilTree()
})
afterEach(() => tree.remove())

async function run(path: string, { roots = [tree.directory] }: { roots?: string[] } = {}) {
  return outputOf(await runTask(filesDigest, digest, { path }, { ...ONCE, resources: await resources(roots) }))
}

/** Returns what does not depend on the path. */
async function digestOf(path: string, options: { roots?: string[] } = {}) {
  const { md5, bytes } = await run(path, options)
  return { md5, bytes }
}

async function resources(roots: string[]) {
  return resourcesWith({ files: await openFileAccess({ roots }) })
}

const permanent = (code: string) => ({ name: 'TaskError', code, retryable: false })

describe('files.digest reads', () => {
  test.each([0, 1, 262_143, 262_144, 262_145, 3_000_000])(
    'a file of %i bytes, with the digest of md5sum',
    async (bytes) => {
      const path = join(tree.directory, 'sized')
      await writeFile(path, Buffer.alloc(bytes, 'bullpen'))
      const md5 = execFileSync('md5sum', [path], { encoding: 'utf8' }).slice(0, 32)
      expect(await run(path)).toEqual({ path, md5, bytes, worker: WORKER, starts: 1 })
    },
  )

  test('a file whose size is unknown to the file system', async () => {
    const { md5, bytes } = await run('/proc/version', { roots: ['/proc'] })
    expect(bytes).toBeGreaterThan(10)
    expect(md5).toBe(execFileSync('md5sum', ['/proc/version'], { encoding: 'utf8' }).slice(0, 32))
  })

  test('through links that stay below a root', async () => {
    const { directory } = tree
    await symlink('plain.txt', join(directory, 'inner-link'))
    await symlink(directory, join(directory, '../root-link'))
    const expected = await digestOf(join(directory, 'plain.txt'))
    expect(await digestOf(join(directory, 'inner-link'))).toEqual(expected)
    const viaRoot = await digestOf(join(directory, '../root-link/plain.txt'), {
      roots: [join(directory, '../root-link')],
    })
    expect(viaRoot).toEqual(expected)
  })
})

describe('files.digest rejects permanently', () => {
  test('a file outside the roots, regardless of how its path is written', async () => {
    const { directory } = tree
    const outside = [
      join(directory, '../outside'),
      `${directory}/../outside`,
      `${directory}/dir/../../outside`,
      join(directory, 'link-to-file'),
      join(directory, 'link-to-dir/outside'),
      '/etc/passwd',
    ]
    for (const path of outside) await expect(run(path), path).rejects.toMatchObject(permanent('path_outside_roots'))
  })

  test('a directory whose name starts with that of a root', async () => {
    await mkdir(`${tree.directory}-2`)
    await writeFile(`${tree.directory}-2/x`, 'x')
    await expect(run(`${tree.directory}-2/x`)).rejects.toMatchObject(permanent('path_outside_roots'))
  })

  test('a path outside the roots without revealing whether it exists', async () => {
    const answerTo = async (path: string) => run(path).catch((error) => error.message.replace(path, 'PATH'))
    expect(await answerTo('/nowhere/at/all')).toBe(await answerTo('/etc/passwd'))
    expect(await answerTo(join(tree.directory, '../nowhere'))).toBe(await answerTo('/etc/passwd'))
  })

  test('every path when there are no roots', async () => {
    await expect(run(join(tree.directory, 'plain.txt'), { roots: [] })).rejects.toMatchObject(
      permanent('path_outside_roots'),
    )
  })

  test('a path that does not exist', async () => {
    await expect(run(join(tree.directory, 'nowhere'))).rejects.toMatchObject(permanent('not_found'))
    await expect(run(join(tree.directory, 'plain.txt/x'))).rejects.toMatchObject(permanent('not_found'))
    await expect(run(join(tree.directory, 'dangling'))).rejects.toMatchObject(permanent('not_found'))
    await expect(run(join(tree.directory, 'x'.repeat(300)))).rejects.toMatchObject(permanent('not_found'))
  })

  test('a directory, a pipe without a writer, a socket, a device, a link to itself', async () => {
    const { directory } = tree
    execFileSync('mkfifo', [join(directory, 'pipe')])
    await symlink('self', join(directory, 'self'))
    await using server = createServer().listen(join(directory, 's'))
    await new Promise((resolve) => server.once('listening', resolve))
    for (const name of ['dir', 'pipe', 's', 'self']) {
      await expect(run(join(directory, name)), name).rejects.toMatchObject(permanent('not_a_file'))
    }
    await expect(run('/dev/zero', { roots: ['/dev'] })).rejects.toMatchObject(permanent('not_a_file'))
  })

  test('a file without permission to read it', async () => {
    const path = join(tree.directory, 'plain.txt')
    await chmod(join(tree.directory, '..'), 0o755)
    await chmod(path, 0)
    await unprivileged(() => expect(run(path)).rejects.toMatchObject(permanent('not_readable')))
  })

  test('a directory that becomes a link while a file in it is opened', async () => {
    const { directory } = tree
    const [dir, secret] = [join(directory, 'dir'), join(directory, '../secret')]
    await mkdir(secret)
    await writeFile(join(secret, 'inside'), 'secret')
    const access = await openFileAccess({ roots: [directory] })
    const digestOfSecret = createHash('md5').update('secret').digest('hex')
    const answers = new Set<string>()
    let over = false
    const swaps = (async () => {
      while (!over) {
        await rename(dir, `${dir}-aside`)
        await symlink(secret, dir)
        await rm(dir)
        await rename(`${dir}-aside`, dir)
      }
    })()
    for (let i = 0; i < 3_000; i++) {
      const answer = access.digest(join(dir, 'inside'), new AbortController().signal)
      answers.add(await answer.then(({ md5 }) => md5).catch((error) => error.code))
    }
    over = true
    await swaps
    expect(answers).not.toContain(digestOfSecret)
    expect(answers.size).toBeGreaterThan(1)
  })
})

test('a cancelled task stops in the middle of a long file', async () => {
  const path = join(tree.directory, 'sparse')
  const file = await open(path, 'w')
  await file.truncate(2 ** 40)
  await file.close()
  const options = { ...ONCE, resources: await resources([tree.directory]), cancelAt: '50ms' } as const
  expect(await runTask(filesDigest, digest, { path }, options)).toMatchObject({ status: 'cancelled', late: [] })
})

test('a worker does not start with a root that is not a directory', async () => {
  const wrong = { code: 'invalid_configuration', message: expect.stringContaining('BULLPEN_WORKER_FILES_ROOTS') }
  await expect(openFileAccess({ roots: [join(tree.directory, 'nowhere')] })).rejects.toMatchObject(wrong)
  await expect(openFileAccess({ roots: [join(tree.directory, 'plain.txt')] })).rejects.toMatchObject(wrong)
})
