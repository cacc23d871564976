// The Redis resolver: its order with imagined machines, its private server with the real redis-server.
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { freePort } from './ports.mjs'
import { pingRedis, resolveRedis, startRedisServer } from './redis.mjs'
import { askRedis } from './redis-probe.mjs'

/** A machine on which nothing is installed and nothing works, except what a test puts there. */
function imagine(overrides = {}) {
  const said = []
  const ran = []
  const world = {
    env: {},
    dataDir: '/nowhere',
    say: (line) => said.push(line),
    ask: async () => false,
    isRoot: false,
    interactive: false,
    find: () => undefined,
    findServer: () => undefined,
    serverVersion: async () => '8.0.1',
    startServer: async () => ({ url: 'redis://127.0.0.1:7001', pid: 1, stop: async () => {} }),
    ping: async () => ({ ok: true }),
    run: async (...command) => {
      ran.push(command.flat().join(' '))
      return { code: 0, stdout: '', stderr: '' }
    },
    docker: {
      answers: async () => true,
      has: async () => true,
      pull: async () => true,
      start: async () => ({ url: 'redis://127.0.0.1:7002', stop: async () => {} }),
    },
    ...overrides,
  }
  return { world, said, ran }
}

const has =
  (...programs) =>
  (name) =>
    programs.includes(name) ? `/usr/bin/${name}` : undefined

describe('the order', () => {
  it('takes REDIS_URL before anything else', async () => {
    const { world } = imagine({ env: { REDIS_URL: 'redis://h:1' }, findServer: () => '/usr/bin/redis-server' })
    expect(await resolveRedis(world)).toMatchObject({ url: 'redis://h:1', origin: 'env' })
  })

  it('never replaces a REDIS_URL that does not answer, and keeps its password to itself', async () => {
    const { world } = imagine({
      env: { REDIS_URL: 'redis://u:secret@h:1' },
      findServer: () => '/usr/bin/redis-server',
      ping: async () => ({ ok: false, reason: 'connect ECONNREFUSED' }),
    })
    const failure = await resolveRedis(world).catch((error) => error.message)
    expect(failure).toBe('REDIS_URL is set, but redis://u:***@h:1 does not answer: connect ECONNREFUSED')
  })

  it('refuses a REDIS_URL that is not one', async () => {
    const { world } = imagine({ env: { REDIS_URL: 'localhost:6379' } })
    await expect(resolveRedis(world)).rejects.toThrow('REDIS_URL is not a URL like redis://')
  })

  it('takes a server on PATH before Docker', async () => {
    const { world } = imagine({ findServer: () => '/usr/bin/valkey-server', find: has('docker', 'apt-get') })
    expect(await resolveRedis(world)).toMatchObject({ origin: 'binary', url: 'redis://127.0.0.1:7001' })
  })

  it('passes over a server that is too old, and says so', async () => {
    const { world, said } = imagine({
      findServer: () => '/usr/bin/redis-server',
      serverVersion: async () => '6.0.16',
      find: has('docker'),
    })
    expect(await resolveRedis(world)).toMatchObject({ origin: 'docker' })
    expect(said).toEqual([expect.stringContaining('6.0.16')])
  })

  it('takes Docker before the package manager', async () => {
    const { world, ran } = imagine({ find: has('docker', 'apt-get'), isRoot: true })
    expect(await resolveRedis(world)).toMatchObject({ origin: 'docker', url: 'redis://127.0.0.1:7002' })
    expect(ran).toEqual([])
  })

  it('pulls the image when it is not here', async () => {
    const { world, said } = imagine({ find: has('docker') })
    world.docker.has = async () => false
    expect(await resolveRedis(world)).toMatchObject({ origin: 'docker' })
    expect(said).toEqual(['Pulling redis:8.'])
  })

  it.each([
    ['no engine answers', { answers: async () => false }],
    ['the image is not to be had', { has: async () => false, pull: async () => false }],
  ])('goes past Docker when %s', async (_, docker) => {
    const { world } = imagine({ find: has('docker') })
    Object.assign(world.docker, docker)
    await expect(resolveRedis(world)).rejects.toThrow('Bullpen needs Redis, and none was found')
  })

  it('installs by itself as root where nobody can be asked, and says so', async () => {
    let installed = false
    const { world, said, ran } = imagine({ find: has('apt-get'), isRoot: true })
    world.findServer = () => (installed ? '/usr/bin/redis-server' : undefined)
    const { run } = world
    world.run = async (...command) => {
      installed ||= command.flat().includes('install')
      return run(...command)
    }
    expect(await resolveRedis(world)).toMatchObject({ origin: 'binary' })
    expect(ran).toEqual(['apt-get update -q', 'apt-get install -y -q redis-server'])
    expect(said).toEqual(['There is no Redis here: installing it with `apt-get install -y redis-server`.'])
  })

  it('asks first on a terminal, and takes no for an answer', async () => {
    const questions = []
    const { world, ran } = imagine({ find: has('dnf'), interactive: true })
    world.ask = async (question) => {
      questions.push(question)
      return false
    }
    await expect(resolveRedis(world)).rejects.toThrow('sudo dnf install -y redis')
    expect(questions).toEqual(['There is no Redis here. Install it with `sudo dnf install -y redis`?'])
    expect(ran).toEqual([])
  })

  it.each([
    ['apt-get', 'sudo apt-get install -y redis-server'],
    ['dnf', 'sudo dnf install -y redis'],
    ['apk', 'sudo apk add --no-cache redis'],
    ['pacman', 'sudo pacman -Sy --noconfirm valkey'],
    ['brew', 'brew install redis'],
  ])('ends, unattended and not root, with the exact line for %s', async (program, line) => {
    const { world, ran } = imagine({ find: has(program) })
    await expect(resolveRedis(world)).rejects.toThrow(`    ${line}\n`)
    expect(ran).toEqual([])
  })

  it('names what it looked for where there is not even a package manager', async () => {
    await expect(resolveRedis(imagine().world)).rejects.toThrow('install Redis 7 or later, or name one: REDIS_URL=')
  })
})

describe('a private server', () => {
  let dir
  const servers = []
  const start = async (options = {}) => {
    const server = await startRedisServer({ dir, ...options })
    servers.push(server)
    return server
  }
  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'bullpen-redis-'))
  })
  afterEach(async () => {
    for (const server of servers.splice(0)) await server.stop()
    rmSync(dir, { recursive: true, force: true })
  })
  const setting = async (url, name) => (await askRedis(url, ['CONFIG', 'GET', name]))[1]

  it('comes from the resolver with the settings that a queue needs, on loopback alone', async () => {
    const redis = await resolveRedis({ env: { PATH: process.env.PATH }, dataDir: dir })
    servers.push(redis)
    expect(redis).toMatchObject({ origin: 'binary', pid: expect.any(Number) })
    expect(await setting(redis.url, 'appendonly')).toBe('yes')
    expect(await setting(redis.url, 'appendfsync')).toBe('everysec')
    expect(await setting(redis.url, 'save')).toBe('')
    expect(await setting(redis.url, 'maxmemory-policy')).toBe('noeviction')
    expect(await setting(redis.url, 'hash-max-listpack-value')).toBe('1024')
    expect(await setting(redis.url, 'bind')).toBe('127.0.0.1')
  })

  it('keeps its data over stop and start', async () => {
    const first = await start()
    await askRedis(first.url, ['SET', 'k', 'kept'])
    await first.stop()
    const second = await start()
    expect(await askRedis(second.url, ['GET', 'k'])).toBe('kept')
    expect(await askRedis(second.url, ['GET', 'other'])).toBeNull()
  })

  it('comes back on the same port after kill -9', async () => {
    const first = await start()
    first.kill('SIGKILL')
    await first.exited()
    expect(await pingRedis(first.url, { within: 0 })).toMatchObject({ ok: false })
    const second = await start({ port: first.port })
    expect(second.url).toBe(first.url)
    expect(second.pid).not.toBe(first.pid)
  })

  it('is taken over when it outlived its owner, and refused while the owner lives', async () => {
    const script = `
      import { startRedisServer } from ${JSON.stringify(new URL('./redis.mjs', import.meta.url).href)}
      const { pid } = await startRedisServer({ dir: process.argv[1] })
      console.log(pid)
      setInterval(() => {}, 1000)`
    const owner = spawn(process.execPath, ['--input-type=module', '-e', script, dir], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const pid = await new Promise((resolve) => owner.stdout.once('data', (chunk) => resolve(Number(chunk))))
    await expect(startRedisServer({ dir })).rejects.toThrow(`for process ${owner.pid}, which still runs`)
    const gone = new Promise((resolve) => owner.once('exit', resolve))
    owner.kill('SIGKILL')
    await gone
    const server = await start()
    expect(server).toMatchObject({ pid, reused: true })
    await server.stop()
    expect(await pingRedis(server.url, { within: 0 })).toMatchObject({ ok: false })
  })

  it('quotes the server when it does not start', async () => {
    await expect(startRedisServer({ dir, args: ['--no-such-setting', '1'] })).rejects.toThrow(/no-such-setting/)
    const { port } = await start()
    await expect(startRedisServer({ dir: join(dir, 'other'), port })).rejects.toThrow(/Address already in use/)
  })
})

describe('asking a server', () => {
  it('says why nobody answers', async () => {
    const port = await freePort()
    const answer = await pingRedis(`redis://127.0.0.1:${port}`, { within: 50 })
    expect(answer).toEqual({ ok: false, reason: expect.stringContaining('ECONNREFUSED') })
  })

  it('signs in with the password of the URL', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'bullpen-redis-'))
    const server = await startRedisServer({ dir })
    try {
      await askRedis(server.url, ['CONFIG', 'SET', 'requirepass', 'p@ss'])
      expect(await pingRedis(server.url)).toMatchObject({ ok: false, reason: expect.stringContaining('NOAUTH') })
      const url = server.url.replace('://', '://:p%40ss@')
      expect(await pingRedis(url)).toEqual({ ok: true })
    } finally {
      await server.stop()
      rmSync(dir, { recursive: true, force: true })
    }
  })
})
