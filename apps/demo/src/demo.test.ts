// Tests the demo against a fake API, and its list against the output of find, sort and md5sum.
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
  return { code, list: stdout.text, messages: stderr.text }
}

describe('the list', () => {
  test.each(['', '/'])('equals the output of md5sum, with DIR ending in "%s"', async (end) => {
    await using api = await fakeApi()
    const { code, list, messages } = await run(api, '--dir', tree.directory + end)
    expect({ code, list }).toEqual({ code: 0, list: await md5Pipeline(tree.directory + end) })
    expect(messages).toMatch(
      new RegExp(`^${tree.files} files, \\d+\\.\\d kB, 2 workers, \\d+\\.\\d s \\(\\d+ files/s\\)\n$`),
    )
  })

  test('begins with DIR as typed, even if DIR is relative or a link, while workers get real paths', async () => {
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
    const { code, list, messages } = await run(api, '--dir', join(tree.directory, 'empty-dir'))
    expect({ code, list }).toEqual({ code: 0, list: '' })
    expect(messages).toMatch(/^0 files, 0 bytes, 0 workers/)
  })

  test('leaves out excluded names directly below DIR', async () => {
    await using api = await fakeApi()
    const { list } = await run(api, '--exclude', 'dir', '--exclude', '.hidden')
    expect(list).toContain('/plain.txt\n')
    expect(list).toContain('in\\\\side\n')
    expect(list).not.toContain('/dir/inside')
    expect(list).not.toContain('.hidden')
  })

  test('never has more than the given number of tasks in flight, and reaches it', async () => {
    await using api = await fakeApi()
    await run(api, '--in-flight', '5')
    expect(api.maxInFlight()).toBe(5)
  })
})

describe('the first error ends the demo with exit code 1 and without a list:', () => {
  test('a file that is removed after the walk', async () => {
    await using api = await fakeApi({
      fails: (path) => (path.endsWith('a.b') ? { code: 'not_found', message: `"${path}" does not exist` } : undefined),
    })
    const { code, list, messages } = await run(api, '--in-flight', '2')
    expect({ code, list }).toEqual({ code: 1, list: '' })
    expect(messages).toContain(`${JSON.stringify(`${tree.directory}/a.b`)}: task files-`)
    expect(messages).toContain('not_found: ')
    expect(messages).not.toContain('    at ')
  })

  test('nothing more is enqueued', async () => {
    await using api = await fakeApi({ fails: () => ({ code: 'not_readable', message: 'may not be read' }) })
    await run(api, '--in-flight', '3')
    expect(api.enqueued.length).toBeLessThanOrEqual(6)
  })

  test('a file name that is not UTF-8, before anything is enqueued', async () => {
    await using api = await fakeApi()
    await writeFile(Buffer.concat([Buffer.from(`${tree.directory}/dir/`), Buffer.from([0x66, 0xfc])]), '')
    const { code, list, messages } = await run(api)
    expect({ code, list, enqueued: api.enqueued.length }).toEqual({ code: 1, list: '', enqueued: 0 })
    expect(messages).toBe(`${tree.directory}/dir/f\\xfc: the name is not UTF-8, so JSON cannot represent it\n`)
  })

  test('a directory or an excluded file whose name is not UTF-8 is not an error', async () => {
    await using api = await fakeApi()
    const notUtf8 = Buffer.concat([Buffer.from(`${tree.directory}/`), Buffer.from([0xfc])])
    await mkdir(notUtf8)
    expect((await run(api)).code).toBe(0)
    await rename(notUtf8, join(tree.directory, 'out'))
    await writeFile(Buffer.concat([Buffer.from(`${tree.directory}/out/`), Buffer.from([0xfc])]), '')
    expect((await run(api, '--exclude', 'out')).code).toBe(0)
  })

  test('a directory that cannot be read, after all results', async () => {
    await chmod(join(tree.directory, '..'), 0o755)
    await mkdir(join(tree.directory, 'closed'), { mode: 0 })
    await using api = await fakeApi()
    const { code, list, messages } = await unprivileged(() => run(api))
    expect({ code, list }).toEqual({ code: 1, list: '' })
    expect(messages).toMatch(/^cannot read the whole directory: EACCES.*\/closed'\n$/s)
    expect(api.enqueued.length).toBeGreaterThan(10)
    expect(api.enqueued.every(({ ended }) => ended)).toBe(true)
  })

  test('the error of a result rather than that of the walk', async () => {
    await chmod(join(tree.directory, '..'), 0o755)
    await mkdir(join(tree.directory, 'closed'), { mode: 0 })
    await using api = await fakeApi({ fails: () => ({ code: 'io_error', message: 'EIO' }) })
    const { messages } = await unprivileged(() => run(api))
    expect(messages).toContain('io_error: EIO')
    expect(messages).not.toContain('cannot read')
  })

  test('a rejected enqueue, and a wrong key', async () => {
    await using api = await fakeApi({ refuses: { status: 403, code: 'forbidden' } })
    expect((await run(api)).messages).toMatch(/: forbidden\n$/)
    const stderr = new Capture()
    const argv = ['--api', api.url, '--dir', tree.directory]
    expect(await demo({ argv, env: { BULLPEN_KEY: 'wrong' }, stdout: new Capture(), stderr })).toBe(1)
    expect(stderr.text).toContain('unauthorized')
  })
})

describe('invalid arguments end the demo with exit code 2 and the usage:', () => {
  test.each([
    [['--dirr', 'x'], /Unknown option '--dirr'/],
    [['more'], /Unexpected argument 'more'/],
    [['--in-flight', '0'], /--in-flight is '0'; expected a whole number from 1 to 1000/],
    [['--in-flight', 'many'], /'many'/],
    [['--kill'], /--kill requires --workers/],
    [['--workers', '1'], /--workers requires --kill/],
    [['--kill', '--workers', '1,x'], /--workers is 'x'/],
    // kill(0) and kill(-1) would signal far more than a worker.
    [['--kill', '--workers', '0'], /--workers is '0'/],
    [['--kill', '--workers', '-1'], /workers/],
    [['--api', 'localhost:80'], /--api is 'localhost:80'; expected an http or https URL/],
    [['--dir', ''], /missing option --dir DIR/],
    [['--dir', '/nowhere/at/all'], /--dir is '\/nowhere\/at\/all': no such directory/],
    [['--dir', '/etc/passwd'], /expected a directory/],
  ])('%j', async (more, message) => {
    const { code, list, messages } = await run({ url: 'http://127.0.0.1:9' }, ...more)
    expect({ code, list }).toEqual({ code: 2, list: '' })
    expect(messages).toMatch(message)
    expect(messages).toContain('\nusage: ')
  })

  test('a symbolic link without a slash, which find would not follow', async () => {
    const { code, messages } = await run({ url: 'http://127.0.0.1:9' }, '--dir', join(tree.directory, 'link-to-dir'))
    expect(code).toBe(2)
    expect(messages).toContain("link-to-dir/' to follow it")
  })

  test('no key', async () => {
    const stderr = new Capture()
    const argv = ['--api', 'http://127.0.0.1:9', '--dir', '/']
    expect(await demo({ argv, env: {}, stdout: new Capture(), stderr })).toBe(2)
    expect(stderr.text).toContain('missing environment variable BULLPEN_KEY')
  })
})

describe('--kill', () => {
  const sleeper = async () => {
    const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'ignore' })
    await once(child, 'spawn')
    return { child, pid: child.pid ?? 0, ended: once(child, 'exit') }
  }

  test('kills a worker that has taken part while it is running a task, and reports which tasks were started again', async () => {
    const [idle, busy] = await Promise.all([sleeper(), sleeper()])
    // This task behaves as if the killed worker held it: it is started again after the kill.
    const held = tree.files - 3
    await using api = await fakeApi({
      worker: () => `host:${busy.pid}:x`,
      fencingToken: (index) => (index === held ? 2 : 1),
      before: (_, index) => (index === held ? busy.ended : undefined),
    })
    const { code, list, messages } = await run(api, '--kill', '--workers', `${idle.pid},${busy.pid}`)
    expect((await busy.ended)[1]).toBe('SIGKILL')
    expect(idle.child.exitCode ?? idle.child.signalCode).toBeNull()
    idle.child.kill('SIGKILL')
    expect({ code, list }).toEqual({ code: 0, list: await md5Pipeline(tree.directory) })
    expect(messages).toContain(`killed worker ${busy.pid} with SIGKILL\n`)
    expect(messages).toContain(`after worker ${busy.pid} was killed, 1 task was started again (1 extra start)\n`)
    expect(messages).toContain('a recovery requires at least two workers, but only 1 took part')
  })

  test('waits until a third of the results are in', async () => {
    const victim = await sleeper()
    let ended = 0
    let firstLook: number | undefined
    await using api = await fakeApi({
      before: async () => {
        if (ended >= tree.files / 3) await victim.ended
        ended++
      },
      active: () => {
        firstLook ??= ended
        return ['held']
      },
    })
    await run(api, '--in-flight', '1', '--kill', '--workers', `${victim.pid}`)
    expect(firstLook).toBe(Math.ceil(tree.files / 3))
  })

  test('lets a worker that is not running a task continue, and tries again', async () => {
    const victim = await sleeper()
    const looks: string[][] = [[], ['quick'], ['other'], [], ['held'], ['held']]
    const left = [...looks]
    await using api = await fakeApi({
      before: async (_, index) => (index === tree.files - 3 ? await victim.ended : undefined),
      active: () => left.shift() ?? [],
    })
    const { messages } = await run(api, '--kill', '--workers', `${victim.pid}`)
    expect(left).toEqual([])
    expect(messages).toContain(`killed worker ${victim.pid} with SIGKILL\n`)
  })

  test('reports that the directory is too small if the kill interrupts nothing', async () => {
    const victim = await sleeper()
    await using api = await fakeApi({
      before: async (_, index) => (index === tree.files - 3 ? await victim.ended : undefined),
      active: () => ['held'],
    })
    const { code, messages } = await run(api, '--kill', '--workers', `${victim.pid}`)
    expect(code).toBe(0)
    expect(messages).toContain('the directory is too small, so no task was interrupted')
  })

  test('reports that no worker could be killed', async () => {
    const gone = await sleeper()
    gone.child.kill('SIGKILL')
    await gone.ended
    await using api = await fakeApi()
    const { code, messages } = await run(api, '--kill', '--workers', `${gone.pid}`)
    expect(code).toBe(0)
    expect(messages).toContain('no worker to kill')
    expect(messages).toContain('no worker was killed')
  })
})

test('the program ends normally if its reader closes the pipe', async () => {
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
  // On a slow machine, progress lines precede the report.
  expect(err.text).toMatch(/(^|\n)1000 files, 0 bytes, 2 workers, [^\n]*\n$/)
})
