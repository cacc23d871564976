// The platform as `npm start` and `npm run demo` bring it up: real Redis, real API, real workers, on ports of their own.
import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { createPlatform, root } from './platform.mjs'
import { runningPlatform } from './platform-file.mjs'
import { run } from './programs.mjs'
import { pingRedis } from './redis.mjs'
import { runningServer } from './redis-server.mjs'

/** A private Redis also where the test run was given one: these tests start and end it. */
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
const until = (check) => vi.waitFor(async () => expect(await check()).toBeTruthy(), { timeout: 20_000, interval: 50 })

async function factorial({ apiUrl, key }, n) {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  const body = JSON.stringify({ task: 'math.factorial', input: { n } })
  const accepted = await fetch(`${apiUrl}/v1/tasks`, { method: 'POST', headers, body })
  const ended = await fetch(`${apiUrl}${accepted.headers.get('location')}?wait=20`, { headers })
  return (await ended.json()).output?.value
}

describe('a platform', () => {
  const home = temporary('platform')
  const said = []
  const make = () => createPlatform({ home, filesRoots: [root], anyPorts: true, env, say: (line) => said.push(line) })
  const platform = make()
  let where
  beforeAll(async () => {
    where = await platform.up()
  })
  afterAll(async () => {
    await platform.down()
    rmSync(home, { recursive: true, force: true })
  })

  it('leaves a note for others, and runs tasks with the key in it', async () => {
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

  it('serves what the welcome names', async () => {
    const { apiUrl, key, api, workers } = where
    const urls = [
      `${apiUrl}/openapi.json`,
      `${apiUrl}/board/login?key=${key}`,
      api.metrics,
      `${workers[0].url}/metrics`,
    ]
    const answers = await Promise.all(urls.map((url) => fetch(url, { headers: { authorization: `Bearer ${key}` } })))
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200])
  })

  it('starts a killed worker again, and notes its new process id', async () => {
    const [{ pid }] = (await runningPlatform(home)).workers
    process.kill(pid, 'SIGKILL')
    await until(async () => (await runningPlatform(home)).workers[0].pid !== pid)
    await until(() =>
      fetch(`${where.workers[0].url}/readyz`)
        .then(({ ok }) => ok)
        .catch(() => false),
    )
    expect(said).toContain('worker-1 was ended by SIGKILL; starting it again in 0.5 s')
    expect(await factorial(where, 6)).toBe('720')
  })

  it('starts its Redis again when that dies, and nothing is lost', async () => {
    process.kill(where.redis.pid, 'SIGKILL')
    await until(() =>
      factorial(where, 7)
        .then((value) => value === '5040')
        .catch(() => false),
    )
    expect(said).toContain('Redis has ended by itself: starting it again.')
  })

  it('is the only one in its place', async () => {
    await expect(make().up()).rejects.toThrow(`a platform runs here already, at ${where.apiUrl}`)
  })

  it('goes down without leaving a process or a note behind', async () => {
    const pids = [...platform.children.values()].map(({ pid }) => pid)
    await platform.down()
    expect(pids.filter((pid) => !isGone(pid))).toEqual([])
    expect(await pingRedis(where.redisUrl, { within: 0 })).toMatchObject({ ok: false })
    expect(existsSync(join(home, 'platform.json'))).toBe(false)
  })
})

describe('npm start', () => {
  it('says where things are, and on Ctrl-C drains, ends everything, and exits with 0', async () => {
    const home = temporary('start')
    const script = `
      import { runHere } from ${JSON.stringify(join(root, 'scripts/run-here.mjs'))}
      await runHere({ home: ${JSON.stringify(home)}, anyPorts: true })`
    const child = spawn(process.execPath, ['--input-type=module', '-e', script], { env, cwd: root })
    const exit = new Promise((resolve) => child.once('close', resolve))
    let text = ''
    child.stdout.setEncoding('utf8').on('data', (chunk) => {
      text += chunk
    })
    await until(() => text.includes('Ctrl-C drains the workers'))
    const { redisUrl, workers } = await runningPlatform(home)
    child.kill('SIGINT')
    child.kill('SIGINT') // npm and the terminal may both pass the same key press on
    expect(await exit).toBe(0)
    expect(text).toMatch(/Bull Board +http:\/\/127\.0\.0\.1:\d+\/board\/login\?key=bp_dev_/)
    expect(text.match(/ curl -sS .*\| xargs /g)).toHaveLength(3)
    expect(text).toContain('Everything has ended.')
    expect(workers.filter(({ pid }) => !isGone(pid))).toEqual([])
    expect(await pingRedis(redisUrl, { within: 0 })).toMatchObject({ ok: false })
    rmSync(home, { recursive: true, force: true })
  })

  it('leaves nothing behind when it is ended while it comes up', async () => {
    const home = temporary('early')
    const platform = createPlatform({ home, filesRoots: [root], anyPorts: true, env, say: () => {} })
    const rising = platform.up()
    await Promise.all([expect(rising).rejects.toThrow('stopped before it was ready'), platform.down()])
    expect(await runningServer(join(home, 'redis'))).toBeUndefined()
    rmSync(home, { recursive: true, force: true })
  })

  it('shows the end of the log of a process that does not get ready', async () => {
    const home = temporary('broken')
    const wrong = { ...env, BULLPEN_WORKER_GRACE: 'soon' }
    const platform = createPlatform({ home, filesRoots: [root], anyPorts: true, env: wrong, say: () => {} })
    await expect(platform.up()).rejects.toThrow(/worker-\d ended before it was ready[\s\S]*BULLPEN_WORKER_GRACE/)
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
  const demo = (...args) => run(process.execPath, [join(root, 'scripts/demo.mjs'), ...args], { env, cwd: root })

  it.each([[[]], [['--kill']]])(
    'prints what md5sum prints, %j',
    async (flags) => {
      const md5sum = 'find "$0" -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum'
      const expected = (await run('sh', ['-c', md5sum, dir])).stdout
      const { code, stdout, stderr } = await demo(...flags, dir)
      expect(stdout).toBe(expected)
      expect(code, stderr).toBe(0)
      if (flags.length > 0) expect(stderr).toMatch(/killed worker \d+ with SIGKILL/)
    },
    60_000,
  )

  it('names a directory that is none', async () => {
    const { code, stdout, stderr } = await demo(join(dir, 'nowhere'))
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr).toContain(`no such file or directory`)
  })
})
