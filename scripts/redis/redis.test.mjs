// The Redis resolver: its order on simulated machines, its private server with a real redis-server.
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { freePort } from '../system/ports.mjs'
import { askRedis, pingRedis } from './probe.mjs'
import { resolveRedis } from './resolve.mjs'
import { startRedisServer } from './server.mjs'

/** A machine on which nothing is installed, except what a test adds. */
function simulate(overrides = {}) {
  const messages = []
  const ran = []
  const world = {
    env: {},
    dataDir: '/nowhere',
    say: (line) => messages.push(line),
    ask: async () => false,
    isRoot: false,
    mayInstall: false,
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
  return { world, messages, ran }
}

const has =
  (...programs) =>
  (name) =>
    programs.includes(name) ? `/usr/bin/${name}` : undefined

describe('resolving a Redis', () => {
  it('REDIS_URL comes first', async () => {
    const { world } = simulate({ env: { REDIS_URL: 'redis://h:1' }, findServer: () => '/usr/bin/redis-server' })
    expect(await resolveRedis(world)).toMatchObject({ url: 'redis://h:1', origin: 'env' })
  })

  it('a REDIS_URL that does not answer is an error, which does not contain the password', async () => {
    const { world } = simulate({
      env: { REDIS_URL: 'redis://u:secret@h:1' },
      findServer: () => '/usr/bin/redis-server',
      ping: async () => ({ ok: false, reason: 'connect ECONNREFUSED' }),
    })
    const failure = await resolveRedis(world).catch((error) => error.message)
    expect(failure).toBe('REDIS_URL is set, but redis://u:***@h:1 does not answer: connect ECONNREFUSED')
  })

  it('a REDIS_URL that is not a Redis URL is refused', async () => {
    const { world } = simulate({ env: { REDIS_URL: 'localhost:6379' } })
    await expect(resolveRedis(world)).rejects.toThrow('REDIS_URL is not a Redis URL; expected one such as redis://')
  })

  it('a server on PATH comes before Docker', async () => {
    const { world } = simulate({ findServer: () => '/usr/bin/valkey-server', find: has('docker', 'apt-get') })
    expect(await resolveRedis(world)).toMatchObject({ origin: 'binary', url: 'redis://127.0.0.1:7001' })
  })

  it('a server that is too old is skipped, and the user is told', async () => {
    const { world, messages } = simulate({
      findServer: () => '/usr/bin/redis-server',
      serverVersion: async () => '6.0.16',
      find: has('docker'),
    })
    expect(await resolveRedis(world)).toMatchObject({ origin: 'docker' })
    expect(messages).toEqual([expect.stringContaining('6.0.16')])
  })

  it('Docker comes before the package manager', async () => {
    const { world, ran } = simulate({ find: has('docker', 'apt-get'), isRoot: true })
    expect(await resolveRedis(world)).toMatchObject({ origin: 'docker', url: 'redis://127.0.0.1:7002' })
    expect(ran).toEqual([])
  })

  it('a missing image is pulled', async () => {
    const { world, messages } = simulate({ find: has('docker') })
    world.docker.has = async () => false
    expect(await resolveRedis(world)).toMatchObject({ origin: 'docker' })
    expect(messages).toEqual(['Pulling redis:8.'])
  })

  it.each([
    ['no engine answers', { answers: async () => false }],
    ['the image cannot be pulled', { has: async () => false, pull: async () => false }],
  ])('Docker is skipped if %s', async (_, docker) => {
    const { world } = simulate({ find: has('docker') })
    Object.assign(world.docker, docker)
    await expect(resolveRedis(world)).rejects.toThrow('Bullpen needs Redis, and found none')
  })

  it('the package manager installs Redis if the user agreed beforehand, also unattended', async () => {
    let installed = false
    const { world, messages, ran } = simulate({ find: has('apt-get'), isRoot: true, mayInstall: true })
    world.findServer = () => (installed ? '/usr/bin/redis-server' : undefined)
    const { run } = world
    world.run = async (...command) => {
      installed ||= command.flat().includes('install')
      return run(...command)
    }
    expect(await resolveRedis(world)).toMatchObject({ origin: 'binary' })
    expect(ran).toEqual(['apt-get update -q', 'apt-get install -y -q redis-server'])
    expect(messages).toEqual(['Installing Redis with `apt-get install -y redis-server`.'])
  })

  it('root installs nothing without consent', async () => {
    const { world, ran } = simulate({ find: has('apt-get'), isRoot: true })
    await expect(resolveRedis(world)).rejects.toThrow('set INSTALL_REDIS=1, or: npm start -- --install-redis')
    expect(ran).toEqual([])
  })

  it('on a terminal the user is asked, and a no is respected', async () => {
    const questions = []
    const { world, ran } = simulate({ find: has('dnf'), interactive: true })
    world.ask = async (question) => {
      questions.push(question)
      return false
    }
    await expect(resolveRedis(world)).rejects.toThrow('sudo dnf install -y redis')
    expect(questions).toEqual(['Redis is not installed. Install it with `sudo dnf install -y redis`?'])
    expect(ran).toEqual([])
  })

  it.each([
    ['apt-get', 'sudo apt-get install -y redis-server'],
    ['dnf', 'sudo dnf install -y redis'],
    ['apk', 'sudo apk add --no-cache redis'],
    ['pacman', 'sudo pacman -Sy --noconfirm valkey'],
    ['brew', 'brew install redis'],
  ])('without consent nothing is installed, and the error has the exact command for %s', async (program, line) => {
    const { world, ran } = simulate({ find: has(program) })
    await expect(resolveRedis(world)).rejects.toThrow(`  install Redis:               ${line}\n`)
    expect(ran).toEqual([])
  })

  it('without a package manager, the error says what to install', async () => {
    await expect(resolveRedis(simulate().world)).rejects.toThrow(
      '  install Redis 7 or later, or Valkey\n  use a running server:        set REDIS_URL=',
    )
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

  it('has the settings that a queue needs and listens on loopback only', async () => {
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

  it('keeps its data across a restart', async () => {
    const first = await start()
    await askRedis(first.url, ['SET', 'k', 'kept'])
    await first.stop()
    const second = await start()
    expect(await askRedis(second.url, ['GET', 'k'])).toBe('kept')
    expect(await askRedis(second.url, ['GET', 'other'])).toBeNull()
  })

  it('restarts on the same port after SIGKILL', async () => {
    const first = await start()
    first.kill('SIGKILL')
    await first.exited()
    expect(await pingRedis(first.url, { within: 0 })).toMatchObject({ ok: false })
    const second = await start({ port: first.port })
    expect(second.url).toBe(first.url)
    expect(second.pid).not.toBe(first.pid)
  })

  it('is taken over if it outlived its owner, and refused while the owner is alive', async () => {
    const script = `
      import { startRedisServer } from ${JSON.stringify(new URL('./server.mjs', import.meta.url).href)}
      const { pid } = await startRedisServer({ dir: process.argv[1] })
      console.log(pid)
      setInterval(() => {}, 1000)`
    const owner = spawn(process.execPath, ['--input-type=module', '-e', script, dir], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const pid = await new Promise((resolve) => owner.stdout.once('data', (chunk) => resolve(Number(chunk))))
    await expect(startRedisServer({ dir })).rejects.toThrow(`for process ${owner.pid}, which is still running`)
    const gone = new Promise((resolve) => owner.once('exit', resolve))
    owner.kill('SIGKILL')
    await gone
    const server = await start()
    expect(server).toMatchObject({ pid, reused: true })
    await server.stop()
    expect(await pingRedis(server.url, { within: 0 })).toMatchObject({ ok: false })
  })

  it('that does not start is reported with its output', async () => {
    await expect(startRedisServer({ dir, args: ['--no-such-setting', '1'] })).rejects.toThrow(/no-such-setting/)
    const { port } = await start()
    await expect(startRedisServer({ dir: join(dir, 'other'), port })).rejects.toThrow(/Address already in use/)
  })
})

describe('a ping', () => {
  it('reports why there is no answer', async () => {
    const port = await freePort()
    const answer = await pingRedis(`redis://127.0.0.1:${port}`, { within: 50 })
    expect(answer).toEqual({ ok: false, reason: expect.stringContaining('ECONNREFUSED') })
  })

  it('authenticates with the password of the URL', async () => {
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
