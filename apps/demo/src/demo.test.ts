// Tests the demo against a fake API, and its list against find, sort and md5sum.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdir, mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import { evilTree, md5Pipeline, unprivileged } from '@bullpen/tasks/files/fixtures'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { demo } from './demo.ts'
import { FAKE_KEY, type FakeApi, fakeApi } from './fake-api.fixture.ts'

let tree: Awaited<ReturnType<typeof evilTree>>
beforeEach(async () => {
  tree = await evilTree()
})
afterEach(() => tree.remove())

class Capture extends Writable {
  text = ''
  override _write(chunk: Buffer, _: string, done: () => void) {
    this.text += chunk
    done()
  }
}

async function run(api: Pick<FakeApi, 'url'>, ...more: string[]) {
  const [stdout, stderr] = [new Capture(), new Capture()]
  const argv = ['--api', api.url, ...(more.includes('--dir') ? [] : ['--dir', tree.directory]), ...more]
  const code = await demo({ argv, env: { BULLPEN_KEY: FAKE_KEY }, stdout, stderr })
  return { code, list: stdout.text, told: stderr.text }
}

describe('the list', () => {
  test.each(['', '/'])('equals the pipeline, with DIR ending in "%s"', async (end) => {
    await using api = await fakeApi()
    const { code, list, told } = await run(api, '--dir', tree.directory + end)
    expect({ code, list }).toEqual({ code: 0, list: await md5Pipeline(tree.directory + end) })
    expect(told).toMatch(
      new RegExp(`^${tree.files} files, \\d+\\.\\d kB, 2 worker processes, \\d+\\.\\d s \\(\\d+ files/s\\)\n$`),
    )
  })

  test('begins with DIR as it was given, also relative and through a link; workers are asked for real paths', async () => {
    await using api = await fakeApi()
    const link = join(tree.directory, '../link')
    await symlink(tree.directory, link)
    const { list } = await run(api, '--dir', `${link}/`)
    expect(list).toBe(await md5Pipeline(`${link}/`))
    expect(api.enqueued.every(({ path }) => path.startsWith(`${tree.directory}/`))).toBe(true)
    const relative = `./${'../'.repeat(process.cwd().split('/').length - 1)}${tree.directory.slice(1)}`
    expect((await run(api, '--dir', relative)).list).toBe(await md5Pipeline(relative))
  })

  test('of an empty directory is empty', async () => {
    await using api = await fakeApi()
    const { code, list, told } = await run(api, '--dir', join(tree.directory, 'empty-dir'))
    expect({ code, list }).toEqual({ code: 0, list: '' })
    expect(told).toMatch(/^0 files, 0 bytes, 0 worker processes/)
  })

  test('leaves out names right below DIR', async () => {
    await using api = await fakeApi()
    const { list } = await run(api, '--exclude', 'dir', '--exclude', '.hidden')
    expect(list).toContain('/plain.txt\n')
    expect(list).toContain('in\\\\side\n')
    expect(list).not.toContain('/dir/inside')
    expect(list).not.toContain('.hidden')
  })

  test('has never more than the given number of tasks under way, and as many', async () => {
    await using api = await fakeApi()
    await run(api, '--in-flight', '5')
    expect(api.most()).toBe(5)
  })
})

describe('the first error ends it, with exit code 1 and no list:', () => {
  test('a file that is removed after the walk', async () => {
    await using api = await fakeApi({
      fails: (path) => (path.endsWith('a.b') ? { code: 'not_found', message: `"${path}" does not exist` } : undefined),
    })
    const { code, list, told } = await run(api, '--in-flight', '2')
    expect({ code, list }).toEqual({ code: 1, list: '' })
    expect(told).toContain(`${JSON.stringify(`${tree.directory}/a.b`)}: task files-`)
    expect(told).toContain('not_found: ')
    expect(told).not.toContain('    at ')
  })

  test('nothing is enqueued after it', async () => {
    await using api = await fakeApi({ fails: () => ({ code: 'not_readable', message: 'may not be read' }) })
    await run(api, '--in-flight', '3')
    expect(api.enqueued.length).toBeLessThanOrEqual(6)
  })

  test('a name that is not UTF-8; nothing is enqueued', async () => {
    await using api = await fakeApi()
    await writeFile(Buffer.concat([Buffer.from(`${tree.directory}/dir/`), Buffer.from([0x66, 0xfc])]), '')
    const { code, list, told } = await run(api)
    expect({ code, list, enqueued: api.enqueued.length }).toEqual({ code: 1, list: '', enqueued: 0 })
    expect(told).toBe(`${tree.directory}/dir/f\\xfc: the name is not UTF-8, so JSON can't carry it\n`)
  })

  test('an odd name that holds no regular file, or is left out, is none', async () => {
    await using api = await fakeApi()
    const odd = Buffer.concat([Buffer.from(`${tree.directory}/`), Buffer.from([0xfc])])
    await mkdir(odd)
    expect((await run(api)).code).toBe(0)
    await rename(odd, join(tree.directory, 'out'))
    await writeFile(Buffer.concat([Buffer.from(`${tree.directory}/out/`), Buffer.from([0xfc])]), '')
    expect((await run(api, '--exclude', 'out')).code).toBe(0)
  })

  test("the walk's own, after all results", async () => {
    await chmod(join(tree.directory, '..'), 0o755)
    await mkdir(join(tree.directory, 'closed'), { mode: 0 })
    await using api = await fakeApi()
    const { code, list, told } = await unprivileged(() => run(api))
    expect({ code, list }).toEqual({ code: 1, list: '' })
    expect(told).toMatch(/^the walk broke off: EACCES.*\/closed'\n$/s)
    expect(api.enqueued.length).toBeGreaterThan(10)
    expect(api.enqueued.every(({ ended }) => ended)).toBe(true)
  })

  test("a result's error is told rather than the walk's", async () => {
    await chmod(join(tree.directory, '..'), 0o755)
    await mkdir(join(tree.directory, 'closed'), { mode: 0 })
    await using api = await fakeApi({ fails: () => ({ code: 'io_error', message: 'EIO' }) })
    const { told } = await unprivileged(() => run(api))
    expect(told).toContain('io_error: EIO')
    expect(told).not.toContain('walk')
  })

  test('an API that refuses, and one that is not there', async () => {
    await using api = await fakeApi({ refuses: { status: 403, code: 'forbidden' } })
    expect((await run(api)).told).toMatch(/: forbidden\n$/)
    const stderr = new Capture()
    const argv = ['--api', api.url, '--dir', tree.directory]
    expect(await demo({ argv, env: { BULLPEN_KEY: 'wrong' }, stdout: new Capture(), stderr })).toBe(1)
    expect(stderr.text).toContain('unauthorized')
  })
})

describe('wrong arguments end it with exit code 2 and the usage:', () => {
  test.each([
    [['--dirr', 'x'], /Unknown option '--dirr'/],
    [['more'], /Unexpected argument 'more'/],
    [['--in-flight', '0'], /--in-flight: '0' is not a whole number from 1 to 1000/],
    [['--in-flight', 'many'], /'many'/],
    [['--kill'], /--kill needs --workers/],
    [['--workers', '1'], /only with --kill/],
    [['--kill', '--workers', '1,x'], /--workers: 'x'/],
    // kill(0) and kill(-1) would end far more than a worker.
    [['--kill', '--workers', '0'], /--workers: '0'/],
    [['--kill', '--workers', '-1'], /workers/],
    [['--api', 'localhost:80'], /--api localhost:80 is not/],
    [['--dir', ''], /--dir DIR is missing/],
    [['--dir', '/nowhere/at/all'], /--dir \/nowhere\/at\/all: does not exist/],
    [['--dir', '/etc/passwd'], /is not a directory/],
  ])('%j', async (more, message) => {
    const { code, list, told } = await run({ url: 'http://127.0.0.1:9' }, ...more)
    expect({ code, list }).toEqual({ code: 2, list: '' })
    expect(told).toMatch(message)
    expect(told).toContain('\nusage: ')
  })

  test('a link without a slash, which find would not follow', async () => {
    const { code, told } = await run({ url: 'http://127.0.0.1:9' }, '--dir', join(tree.directory, 'link-to-dir'))
    expect(code).toBe(2)
    expect(told).toContain("link-to-dir/' follows it")
  })

  test('no key', async () => {
    const stderr = new Capture()
    const argv = ['--api', 'http://127.0.0.1:9', '--dir', '/']
    expect(await demo({ argv, env: {}, stdout: new Capture(), stderr })).toBe(2)
    expect(stderr.text).toContain('BULLPEN_KEY in the environment is missing')
  })
})

describe('--kill', () => {
  const sleeper = async () => {
    const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'ignore' })
    await once(child, 'spawn')
    return { child, pid: child.pid ?? 0, ended: once(child, 'exit') }
  }

  test('kills a worker that has taken part, while it holds a task, and tells what was started again', async () => {
    const [idle, busy] = await Promise.all([sleeper(), sleeper()])
    // As if held by the worker that dies: started again once it is dead.
    const held = tree.files - 3
    await using api = await fakeApi({
      process: () => `host:${busy.pid}:x`,
      fencingToken: (index) => (index === held ? 2 : 1),
      before: (_, index) => (index === held ? busy.ended : undefined),
    })
    const { code, list, told } = await run(api, '--kill', '--workers', `${idle.pid},${busy.pid}`)
    expect((await busy.ended)[1]).toBe('SIGKILL')
    expect(idle.child.exitCode ?? idle.child.signalCode).toBeNull()
    idle.child.kill('SIGKILL')
    expect({ code, list }).toEqual({ code: 0, list: await md5Pipeline(tree.directory) })
    expect(told).toContain(`killed worker ${busy.pid} with SIGKILL\n`)
    expect(told).toContain(`after worker ${busy.pid} was killed, 1 task was started again: 1 start beyond the first`)
    expect(told).toContain('at least two worker processes must take part; 1 did')
  })

  test('waits with the kill until a third of the results are in', async () => {
    const victim = await sleeper()
    let ended = 0
    let lookedAt: number | undefined
    await using api = await fakeApi({
      before: async () => {
        if (ended >= tree.files / 3) await victim.ended
        ended++
      },
      active: () => {
        lookedAt ??= ended
        return ['held']
      },
    })
    await run(api, '--in-flight', '1', '--kill', '--workers', `${victim.pid}`)
    expect(lookedAt).toBe(Math.ceil(tree.files / 3))
  })

  test('lets a worker go on that holds no task, and tries again', async () => {
    const victim = await sleeper()
    const looks: string[][] = [[], ['quick'], ['other'], [], ['held'], ['held']]
    const left = [...looks]
    await using api = await fakeApi({
      before: async (_, index) => (index === tree.files - 3 ? await victim.ended : undefined),
      active: () => left.shift() ?? [],
    })
    const { told } = await run(api, '--kill', '--workers', `${victim.pid}`)
    expect(left).toEqual([])
    expect(told).toContain(`killed worker ${victim.pid} with SIGKILL\n`)
  })

  test('says so when there is none to kill', async () => {
    const gone = await sleeper()
    gone.child.kill('SIGKILL')
    await gone.ended
    await using api = await fakeApi()
    const { code, told } = await run(api, '--kill', '--workers', `${gone.pid}`)
    expect(code).toBe(0)
    expect(told).toContain('no worker to kill')
    expect(told).toContain('no worker was killed')
  })
})

test('as a program it is not disturbed by a reader that leaves', async () => {
  await using api = await fakeApi()
  const directory = await mkdtemp(join(tmpdir(), 'bullpen-demo-'))
  const long = 'x'.repeat(200)
  await Promise.all(Array.from({ length: 1_000 }, (_, i) => writeFile(join(directory, `${long}${i}`), '')))
  const main = join(import.meta.dirname, 'main.ts')
  const script = '"$0" "$1" --api "$2" --dir "$3" | head -n 1; exit $PIPESTATUS'
  const child = spawn('bash', ['-c', script, process.execPath, main, api.url, directory], {
    env: { ...process.env, BULLPEN_KEY: FAKE_KEY },
  })
  const [out, err] = [new Capture(), new Capture()]
  child.stdout.pipe(out)
  child.stderr.pipe(err)
  const [code] = await once(child, 'close')
  await rm(directory, { recursive: true })
  expect({ code, lines: out.text.split('\n').length }).toEqual({ code: 0, lines: 2 })
  // A slow machine sees its progress in lines before.
  expect(err.text).toMatch(/(^|\n)1000 files, 0 bytes, 2 worker processes, [^\n]*\n$/)
})
