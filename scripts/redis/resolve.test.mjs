// Which Redis is used, on simulated machines.
import { describe, expect, it } from 'vitest'
import { resolveRedis } from './resolve.mjs'

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
  it.each(['binary', 'docker'])(
    'a server that is started (%s) has a memory limit, so that doctor finds nothing',
    async (origin) => {
      const started = []
      const start = async (options) => {
        started.push(options)
        return { url: 'redis://127.0.0.1:7001', pid: 1, stop: async () => {} }
      }
      const { world } = simulate({
        find: has('docker'),
        findServer: () => (origin === 'binary' ? '/usr/bin/redis-server' : undefined),
        startServer: start,
      })
      world.docker.start = start
      expect(await resolveRedis(world)).toMatchObject({ origin })
      expect(started).toMatchObject([{ args: ['--maxmemory', expect.stringMatching(/^[1-9]\d+$/)] }])
    },
  )

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
    expect(failure).toBe(
      'the server that REDIS_URL names, redis://u:***@h:1, does not respond: connect ECONNREFUSED. ' +
        'Start that server. To use a private server instead, unset REDIS_URL.',
    )
  })

  it.each(['localhost:6379', 'hunter2', 'http://h'])('a REDIS_URL such as %s is refused and not shown', async (url) => {
    const { world } = simulate({ env: { REDIS_URL: url } })
    await expect(resolveRedis(world)).rejects.toThrow(
      'REDIS_URL is not the URL of a Redis server; expected the URL of a single server, such as redis://127.0.0.1:6379 ' +
        '(with TLS: rediss://). To use a private server instead, unset REDIS_URL.',
    )
  })

  it.each(['redis+cluster://u:p@ss@h:1,h:2', 'rediss+cluster://h:1,h:2'])(
    'a REDIS_URL of a cluster such as %s is refused, and the message names its nodes, what is expected and what to do',
    async (url) => {
      const { world } = simulate({ env: { REDIS_URL: url } })
      await expect(resolveRedis(world)).rejects.toThrow(
        'REDIS_URL names the nodes of a Redis Cluster, h:1,h:2; expected the URL of a single server, such as ' +
          'redis://127.0.0.1:6379 (with TLS: rediss://). To use a private server instead, unset REDIS_URL. ' +
          'To run the API and the workers on a cluster, see docs/how-to/redis-cluster.md.',
      )
    },
  )

  it('a server on PATH comes before Docker', async () => {
    const { world } = simulate({ findServer: () => '/usr/bin/valkey-server', find: has('docker', 'apt-get') })
    expect(await resolveRedis(world)).toMatchObject({ origin: 'binary', url: 'redis://127.0.0.1:7001' })
  })

  it('skips a server that is too old, and says so', async () => {
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
    await expect(resolveRedis(world)).rejects.toThrow('Bullpen needs Redis but found none')
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
