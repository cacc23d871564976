// The platform as `npm start` and `npm run demo` start it: a real Redis, API and workers, on free ports.
import { spawn } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, inject, it, vi } from 'vitest'
import { askRedis, pingRedis } from '../redis/probe.mjs'
import { runningServer } from '../redis/server.mjs'
import { run } from '../system/programs.mjs'
import { createPlatform, root } from './platform.mjs'
import { runningPlatform } from './platform-record.mjs'

/** REDIS_URL is cleared, since these tests stop and kill their Redis. */
const env = { ...process.env, REDIS_URL: '', NO_COLOR: '1' }
const temporary = (name) => realpathSync(mkdtempSync(join(tmpdir(), `bullpen-${name}-`)))
const isGone = (pid) => {
  try {
    process.kill(pid, 0)
    return false
  } catch {
    return true
  }
}
const until = (check) => vi.waitFor(async () => expect(await check()).toBeTruthy(), { timeout: 120_000, interval: 50 })

async function factorial({ apiUrl, key }, n) {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  const body = JSON.stringify({ task: 'math.factorial', input: { n } })
  const accepted = await fetch(`${apiUrl}/v1/tasks`, { method: 'POST', headers, body })
  for (;;) {
    const found = await fetch(`${apiUrl}${accepted.headers.get('location')}?wait=30`, { headers })
    const { status, output } = await found.json()
    if (!['waiting', 'active', 'retrying'].includes(status)) return output?.value
  }
}

describe('a platform', () => {
  const home = temporary('platform')
  const messages = []
  const make = () =>
    createPlatform({ home, filesRoots: [root], observe: true, anyPorts: true, env, say: (line) => messages.push(line) })
  const platform = make()
  let where
  beforeAll(async () => {
    where = await platform.up()
  })
  afterAll(async () => {
    await platform.down()
    rmSync(home, { recursive: true, force: true })
  })

  it('publishes a record with the key, with which tasks run', async () => {
    const note = await runningPlatform(home)
    expect(note).toMatchObject({
      pid: process.pid,
      filesRoots: [root],
      key: expect.stringMatching(/^bp_dev_[0-9a-f]{32}$/),
    })
    expect(note.workers.map(({ name }) => name)).toEqual(['worker-1', 'worker-2'])
    expect(statSync(join(home, 'platform.json')).mode & 0o777).toBe(0o600)
    expect(statSync(join(home, 'dev-key')).mode & 0o777).toBe(0o600)
    expect(await factorial(note, 5)).toBe('120')
  })

  it('keeps its key out of its logs, which only their owner can read', () => {
    for (const name of ['api', 'worker-1', 'worker-2']) {
      const file = join(home, 'logs', `${name}.log`)
      expect(readFileSync(file, 'utf8')).not.toContain(where.key)
      expect(statSync(file).mode & 0o777).toBe(0o600)
    }
  })

  it('serves every address that the banner names', async () => {
    const { apiUrl, key, api, workers } = where
    const urls = [
      `${apiUrl}/openapi.json`,
      `${apiUrl}/board/login?key=${key}`,
      api.metrics,
      `${workers[0].url}/metrics`,
    ]
    const headers = { authorization: `Bearer ${key}` }
    for (const url of urls) {
      const response = await fetch(url, { headers })
      // Until a long body has been read, its connection stays open, even after the server has ended.
      await response.text()
      expect({ url, status: response.status }).toEqual({ url, status: 200 })
    }
  })

  it('restarts a killed worker and records its new process id', async () => {
    const [{ pid }] = (await runningPlatform(home)).workers
    process.kill(pid, 'SIGKILL')
    await until(async () => (await runningPlatform(home)).workers[0].pid !== pid)
    await until(() =>
      fetch(`${where.workers[0].url}/readyz`)
        .then(({ ok }) => ok)
        .catch(() => false),
    )
    expect(messages).toContain('worker-1 was killed by SIGKILL; restarting it in 0.5 s')
    expect(await factorial(where, 6)).toBe('720')
  })

  it('restarts its Redis when that is killed, without losing tasks', async () => {
    process.kill(where.redis.pid, 'SIGKILL')
    await until(() =>
      factorial(where, 7)
        .then((value) => value === '5040')
        .catch(() => false),
    )
    expect(messages).toContain('Redis exited unexpectedly; restarting it.')
  })

  it('is scraped by its Prometheus, which evaluates the alerts', async () => {
    const ask = async (path) => (await (await fetch(`${where.prometheus.url}/api/v1/${path}`)).json()).data
    await until(async () => (await ask('query?query=sum(bullpen_build_info)')).result[0]?.value[1] === '3')
    const { groups } = await ask('rules')
    expect(groups.flatMap(({ rules }) => rules).map(({ name }) => name)).toContain('BullpenQueueStuck')
  })

  it('refuses a second platform in the same place', async () => {
    await expect(make().up()).rejects.toThrow(`the platform is already running, at ${where.apiUrl}`)
  })

  it('stops without leaving a process or a record behind', async () => {
    const pids = [where.prometheus, ...platform.children.values()].map(({ pid }) => pid)
    await platform.down()
    expect(pids.filter((pid) => !isGone(pid))).toEqual([])
    expect(await pingRedis(where.redisUrl, { within: 0 })).toMatchObject({ ok: false })
    expect(existsSync(join(home, 'platform.json'))).toBe(false)
  })
})

describe('npm start', () => {
  it('prints where everything is, and on Ctrl-C drains, stops everything and exits with 0', async () => {
    const home = temporary('start')
    const script = `
      import { runInTerminal } from ${JSON.stringify(join(root, 'scripts/platform/run-in-terminal.mjs'))}
      await runInTerminal({ home: ${JSON.stringify(home)}, anyPorts: true })`
    const child = spawn(process.execPath, ['--input-type=module', '-e', script], { env, cwd: root })
    const exit = new Promise((resolve) => child.once('close', resolve))
    let text = ''
    child.stdout.setEncoding('utf8').on('data', (chunk) => {
      text += chunk
    })
    await until(() => text.includes('Ctrl-C drains the workers'))
    const { redisUrl, workers } = await runningPlatform(home)
    child.kill('SIGINT')
    child.kill('SIGINT') // npm and the terminal may both forward one key press
    expect(await exit).toBe(0)
    expect(text).toMatch(/Bull Board +http:\/\/127\.0\.0\.1:\d+\/board\/login\?key=bp_dev_/)
    expect(text.match(/ curl -sS .*\| xargs /g)).toHaveLength(4)
    expect(text.match(/ npx --no -- bullpen enqueue .* --wait \d+s/g)).toHaveLength(3)
    expect(text).toMatch(/ npx --no -- bullpen runs start md5-all-bounded .* --wait \d+s/)
    expect(text).toContain('Stopped.')
    expect(workers.filter(({ pid }) => !isGone(pid))).toEqual([])
    expect(await pingRedis(redisUrl, { within: 0 })).toMatchObject({ ok: false })
    rmSync(home, { recursive: true, force: true })
  })

  it('leaves nothing behind if it is stopped while it starts', async () => {
    const home = temporary('early')
    const platform = createPlatform({ home, filesRoots: [root], anyPorts: true, env, say: () => {} })
    const rising = platform.up()
    await Promise.all([expect(rising).rejects.toThrow('stopped before it was ready'), platform.down()])
    expect(await runningServer(join(home, 'redis'))).toBeUndefined()
    rmSync(home, { recursive: true, force: true })
  })

  it('shows why a process did not get ready', async () => {
    const home = temporary('broken')
    const wrong = { ...env, BULLPEN_WORKER_GRACE: 'soon' }
    const platform = createPlatform({ home, filesRoots: [root], anyPorts: true, env: wrong, say: () => {} })
    await expect(platform.up()).rejects.toThrow(/worker-\d exited before it was ready[\s\S]*BULLPEN_WORKER_GRACE/)
    await platform.down()
    rmSync(home, { recursive: true, force: true })
  })
})

describe('npm run demo', () => {
  const dir = temporary('tree')
  beforeAll(() => {
    mkdirSync(join(dir, 'a b'))
    for (let i = 0; i < 200; i++) writeFileSync(join(dir, 'a b', `file ${i}`), 'x'.repeat(i))
    for (const name of ['new\nline', 'back\\slash', 'Ünïcode', '-dash']) writeFileSync(join(dir, name), name)
  })
  afterAll(() => rmSync(dir, { recursive: true, force: true }))
  const script = join(root, 'scripts/demo.mjs')
  const demo = (args, using = env) => run(process.execPath, [script, ...args], { env: using, cwd: root })
  /** The environment of a demo that uses a server which is not its own. */
  const shared = { ...env, REDIS_URL: inject('redisUrl') }
  const keysOfDemos = () => askRedis(shared.REDIS_URL, ['KEYS', '{demo-*'])

  it.each([[[]], [['--mode', 'parallel', '--kill']]])(
    'prints what md5sum prints, with the arguments %j',
    async (flags) => {
      const md5sum = 'find "$0" -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum'
      const expected = (await run('sh', ['-c', md5sum, dir])).stdout
      const { code, stdout, stderr } = await demo([...flags, dir], flags.length > 0 ? shared : env)
      expect(code, stderr).toBe(0)
      expect(stdout).toBe(expected)
      if (flags.length === 0) return
      expect(stderr).toMatch(/killed worker \d+ with SIGKILL/)
      expect(await keysOfDemos()).toEqual([])
    },
  )

  it('leaves nothing in a Redis that others use, even if Ctrl-C is pressed several times', async () => {
    const child = spawn(process.execPath, [script, dir], {
      env: shared,
      cwd: root,
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    const ended = new Promise((resolve) => child.once('exit', (code, signal) => resolve({ code, signal })))
    let text = ''
    child.stderr.setEncoding('utf8').on('data', (chunk) => {
      text += chunk
    })
    await until(() => text.includes('started run-'))
    expect(await keysOfDemos()).not.toEqual([])
    child.kill('SIGINT')
    await until(() => /was cancelled|\d s \(/.test(text))
    child.kill('SIGINT')
    expect(await ended).toMatchObject({ signal: null })
    expect(await keysOfDemos()).toEqual([])
  })

  it('refuses a directory that does not exist', async () => {
    const { code, stdout, stderr } = await demo([join(dir, 'nowhere')])
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr).toContain('does not exist')
  })

  it('refuses a second directory', async () => {
    const { code, stdout, stderr } = await demo([dir, 'other'])
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr).toContain("unexpected argument 'other'; expected one directory")
  })
})
