// Tests the demo with a real API and real workers, and its list against the output of find, sort and md5sum.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import { evilTree, md5Pipeline } from '@bullpen/tasks/files/fixtures'
import { eventually } from '@bullpen/testkit'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { demo } from './demo.ts'
import { openFleetApi } from './fleet-api.fixture.ts'

let fleet: Awaited<ReturnType<typeof openFleetApi>>
beforeAll(async () => {
  fleet = await openFleetApi()
  await Promise.all([fleet.startWorker('a'), fleet.startWorker('b')])
})
afterAll(() => fleet.close())

let tree: Awaited<ReturnType<typeof evilTree>>
beforeEach(async () => {
  tree = await evilTree()
  fleet.ledger.reset()
})
afterEach(() => tree.remove())

class Capture extends Writable {
  text = ''
  override _write(chunk: Buffer, _: string, done: () => void) {
    this.text += chunk
    done()
  }
}

interface Run {
  readonly url?: string
  readonly env?: NodeJS.ProcessEnv
  readonly signal?: AbortSignal
}

async function run(more: readonly string[] = [], { url, env, signal }: Run = {}) {
  const [stdout, stderr] = [new Capture(), new Capture()]
  const defaults = { '--api': url ?? fleet.url, '--dir': tree.directory }
  const argv = [...Object.entries(defaults).flatMap((each) => (more.includes(each[0]) ? [] : each)), ...more]
  const code = await demo({
    argv,
    env: env ?? { BULLPEN_KEY: fleet.key },
    stdout,
    stderr,
    signal: signal ?? new AbortController().signal,
  })
  // On a slow machine, lines with the progress are between the others.
  const messages = stderr.text.replaceAll(/^(starting|\d+ files? found.*)\n/gm, '')
  return { code, list: stdout.text, messages }
}

describe('the list', () => {
  test.each(['', '/'])('equals the output of md5sum, with DIR ending in "%s"', async (end) => {
    const { code, list, messages } = await run(['--dir', tree.directory + end])
    expect({ code, list }).toEqual({ code: 0, list: await md5Pipeline(tree.directory + end) })
    const report = `${tree.files} files, \\d+\\.\\d kB, [12] workers?, \\d+\\.\\d s \\(\\d+ files/s\\)`
    // A machine that is busy enough lets a worker lose its locks.
    const again = '(\\d+ tasks? (was|were) started again\n)?'
    expect(messages).toMatch(new RegExp(`^started run-\\w+ with --mode bounded\n${report}\n${again}$`))
  })

  test('begins with DIR as typed, even if DIR is relative or a link, while workers get real paths', async () => {
    const link = join(tree.directory, '../link')
    await symlink(tree.directory, link)
    const { list } = await run(['--dir', `${link}/`])
    expect(list).toBe(await md5Pipeline(`${link}/`))
    expect(fleet.ledger.started.every(({ path }) => path.startsWith(`${tree.directory}/`))).toBe(true)
    const relative = `./${'../'.repeat(process.cwd().split('/').length - 1)}${tree.directory.slice(1)}`
    expect((await run(['--dir', relative])).list).toBe(await md5Pipeline(relative))
  })

  test('of an empty directory is empty', async () => {
    const { code, list, messages } = await run(['--dir', join(tree.directory, 'empty-dir')])
    expect({ code, list }).toEqual({ code: 0, list: '' })
    expect(messages).toMatch(/\n0 files, 0 bytes, 0 workers/)
  })

  test('leaves out excluded names directly below DIR', async () => {
    const { list } = await run(['--exclude', 'dir', '--exclude', '.hidden'])
    expect(list).toContain('/plain.txt\n')
    expect(list).toContain('in\\\\side\n')
    expect(list).not.toContain('/dir/inside')
    expect(list).not.toContain('.hidden')
  })

  test('is the same if one file is read at a time', async () => {
    const { list, messages } = await run(['--mode', 'serial'])
    expect(list).toBe(await md5Pipeline(tree.directory))
    expect(messages).toMatch(/^started run-\w+ with --mode serial\n/)
    expect(fleet.ledger.most).toBe(1)
  })
})

describe('the first error ends the demo with exit code 1 and without a list:', () => {
  test('a file that is removed after the walk, as typed', async () => {
    fleet.ledger.onStart = (path) => (path.endsWith('a.b') ? rm(path) : undefined)
    const { code, list, messages } = await run(['--dir', `${tree.directory}/`])
    expect({ code, list }).toEqual({ code: 1, list: '' })
    expect(messages).toContain(`${JSON.stringify(`${tree.directory}/a.b`)}: task files-`)
    expect(messages).toContain(' is dead: not_found: ')
    expect(messages).not.toContain('    at ')
  })

  test('a file name that is not UTF-8, after all results', async () => {
    await writeFile(Buffer.concat([Buffer.from(`${tree.directory}/dir/`), Buffer.from([0xfc])]), '')
    const { code, list, messages } = await run()
    expect({ code, list }).toEqual({ code: 1, list: '' })
    expect(messages).toContain('cannot read the whole directory: name_not_utf8: ')
    expect(messages).toContain(`${tree.directory}/dir/\\xfc has a name that is not UTF-8; rename it\n`)
    expect(fleet.ledger.started.length).toBeGreaterThan(10)
  })

  test('a directory or an excluded file whose name is not UTF-8 is not an error', async () => {
    const notUtf8 = Buffer.concat([Buffer.from(`${tree.directory}/`), Buffer.from([0xfc])])
    await mkdir(notUtf8)
    expect((await run()).code).toBe(0)
    await rename(notUtf8, join(tree.directory, 'out'))
    await writeFile(Buffer.concat([Buffer.from(`${tree.directory}/out/`), Buffer.from([0xfc])]), '')
    expect((await run(['--exclude', 'out'])).code).toBe(0)
  })

  test('the error of a result rather than that of the walk', async () => {
    await writeFile(Buffer.concat([Buffer.from(`${tree.directory}/`), Buffer.from([0xfc])]), '')
    fleet.ledger.onStart = (path) => (path.endsWith('plain.txt') ? rm(path) : undefined)
    const { messages } = await run()
    expect(messages).toContain('plain.txt')
    expect(messages).not.toContain('cannot read')
  })

  test('a directory that the workers may not read', async () => {
    const { code, messages } = await run(['--dir', '/usr/lib'])
    expect(code).toBe(1)
    expect(messages).toContain('cannot read the whole directory: path_outside_roots: "/usr/lib" is not below')
  })

  test('a wrong key', async () => {
    const { code, messages } = await run([], { env: { BULLPEN_KEY: 'wrong' } })
    expect(code).toBe(1)
    expect(messages).toMatch(/^unauthorized.*\n$/)
  })
})

test('Ctrl-C cancels the run, and the demo ends when none of its tasks is waiting or running', async () => {
  fleet.ledger.hold()
  const interrupted = new AbortController()
  const running = run([], { signal: interrupted.signal })
  await eventually(() => fleet.ledger.running === 20)
  interrupted.abort()
  const { code, list, messages } = await running
  expect({ code, list }).toEqual({ code: 130, list: '' })
  expect(messages).toMatch(
    /\ncancelling (run-\w+)\n\1 was cancelled after 0 of \d+ files; none of its tasks is waiting or running\n$/,
  )
  expect(fleet.ledger).toMatchObject({ running: 0, aborted: 20 })
})

describe('invalid arguments end the demo with exit code 2 and the usage:', () => {
  test.each([
    [['--dirr', 'x'], /Unknown option '--dirr'/],
    [['more'], /Unexpected argument 'more'/],
    [['--mode', 'serial', '--mode', 'bounded'], /--mode is specified twice/],
    [['--mode', 'fast'], /--mode is 'fast'; expected serial, parallel or bounded/],
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
    const { code, list, messages } = await run(more, { url: 'http://127.0.0.1:9' })
    expect({ code, list }).toEqual({ code: 2, list: '' })
    expect(messages).toMatch(message)
    expect(messages).toContain('\nusage: ')
  })

  test('a symbolic link without a slash, which find would not follow', async () => {
    const { code, messages } = await run(['--dir', join(tree.directory, 'link-to-dir')])
    expect(code).toBe(2)
    expect(messages).toContain("link-to-dir/' to follow it")
  })

  test('no key', async () => {
    const { code, messages } = await run([], { env: {} })
    expect(code).toBe(2)
    expect(messages).toContain('missing environment variable BULLPEN_KEY')
  })
})

describe('--kill', () => {
  /** A process that takes the place of a worker. The digests that the test holds are those that it runs. */
  const sleeper = async () => {
    const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'ignore' })
    await once(child, 'spawn')
    return { child, pid: child.pid ?? 0, ended: once(child, 'exit') }
  }

  test('kills a worker while digests are running, once a third of the files are done', async () => {
    const victim = await sleeper()
    const done = Math.ceil(tree.files / 3)
    const { ledger } = fleet
    ledger.hold(() => ledger.started.length > done)
    victim.ended.then(() => ledger.release())
    const { code, list, messages } = await run(['--kill', '--workers', `${victim.pid}`])
    expect((await victim.ended)[1]).toBe('SIGKILL')
    expect({ code, list }).toEqual({ code: 0, list: await md5Pipeline(tree.directory) })
    expect(messages).toMatch(
      new RegExp(`^killed worker ${victim.pid} with SIGKILL while it was reading \\d+ files?$`, 'm'),
    )
  })

  test('lets a worker that is not running a digest continue', async () => {
    const victim = await sleeper()
    // Nothing is held, so that no digest outlasts the pause.
    const { code, messages } = await run(['--kill', '--workers', `${victim.pid}`])
    expect((await victim.ended)[1]).toBe('SIGKILL')
    expect(code).toBe(0)
    expect(messages).toContain('no task was interrupted; try a directory with more or larger files')
  })

  test('kills no worker if there is no file to read', async () => {
    const victim = await sleeper()
    onTestFinished(() => void victim.child.kill('SIGKILL'))
    const { code, messages } = await run([
      ...['--kill', '--workers', `${victim.pid}`],
      ...['--dir', join(tree.directory, 'empty-dir')],
    ])
    expect(code).toBe(0)
    expect(victim.child.exitCode ?? victim.child.signalCode).toBe(null)
    expect(messages).toMatch(/\n0 files, .*\nno worker was killed, because there was no file to read\n$/)
  })

  test('reports that no worker could be killed', async () => {
    const gone = await sleeper()
    gone.child.kill('SIGKILL')
    await gone.ended
    const { code, messages } = await run(['--kill', '--workers', `${gone.pid}`])
    expect(code).toBe(0)
    expect(messages).toContain('no worker was killed')
  })
})
