// Finds the Redis to use, or starts one. It tries the server that REDIS_URL names, a redis-server on PATH, and a container. If
// none is available, this module installs one with the package manager if the user agrees, or prints what to run.
import { totalmem } from 'node:os'
import { createInterface } from 'node:readline/promises'
import { hasConsent } from '../system/consent.mjs'
import { findPackageManager } from '../system/package-manager.mjs'
import { findProgram, run } from '../system/programs.mjs'
import { UserError } from '../system/user-error.mjs'
import { engineAnswers, IMAGE, imageIsHere, pullImage, startContainer } from './docker.mjs'
import { pingRedis, withoutPassword } from './probe.mjs'
import { findServerBinary, startRedisServer } from './server.mjs'

/**
 * A private server also has `exited` and `restart`, which starts it on the same port and data.
 * @typedef {{ url: string, origin: 'env' | 'binary' | 'docker', stop: () => Promise<void>, pid?: number,
 *   exited?: () => Promise<void>, restart?: () => Promise<{ stop: () => Promise<void>, exited: () => Promise<void> }> }}
 *   ResolvedRedis
 * `stop` stops a server that was started here, and does nothing to the server that REDIS_URL names.
 */

const OLDEST = 7 // the first Redis with listpacks; Valkey begins at 7.2

/** A server without a limit is killed when the machine's memory is full. `bullpen doctor` advises at most this share. */
const MEMORY_LIMIT = Object.freeze(['--maxmemory', String(Math.floor(totalmem() * 0.75))])

/**
 * Everything outside this module that a step uses. Tests replace it. `mayInstall` means that the user agreed to an installation.
 */
const machine = {
  env: process.env,
  mayInstall: hasConsent('INSTALL_REDIS'), // replaces --install-redis
  dataDir: '.bullpen/redis',
  say: (line) => console.error(line),
  isRoot: process.getuid?.() === 0,
  interactive: Boolean(process.stdin.isTTY && process.stderr.isTTY),
  ask: askOnTerminal,
  find: findProgram,
  findServer: findServerBinary,
  serverVersion: async (binary) => (await run(binary, ['--version'])).stdout.match(/v=([\d.]+)/)?.[1] ?? 'unknown',
  startServer: startRedisServer,
  ping: pingRedis,
  run: installByPackageManager,
  docker: { answers: engineAnswers, has: imageIsHere, pull: pullImage, start: startContainer },
}

/** Prints to stderr, because stdout may be used for data. */
function installByPackageManager(command, args) {
  return run(command, args, { stdio: ['inherit', 2, 2], env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' } })
}

async function askOnTerminal(question) {
  const terminal = createInterface({ input: process.stdin, output: process.stderr })
  try {
    return /^(y|yes|)$/i.test((await terminal.question(`${question} [Y/n] `)).trim())
  } finally {
    terminal.close()
  }
}

const EXPECTED = 'expected the URL of a single server, such as redis://127.0.0.1:6379 (with TLS: rediss://)'
const UNSET = 'To use a private server instead, unset REDIS_URL.'

/**
 * 1. Uses the server that REDIS_URL names. If that server does not respond, this is an error, because another server would have
 * other tasks.
 */
async function fromEnvironment({ env, ping }) {
  const url = env.REDIS_URL
  if (url === undefined || url === '') return undefined
  const nodes = /^rediss?\+cluster:\/\/(?:.*@)?(.*)$/.exec(url)?.[1]
  if (nodes !== undefined) {
    throw new UserError(
      `REDIS_URL names the nodes of a Redis Cluster, ${nodes}; ${EXPECTED}. ${UNSET} To run the API and the workers on a cluster, see docs/how-to/redis-cluster.md.`,
    )
  }
  // The value is not shown, because it may be a password.
  if (!URL.canParse(url) || !/^rediss?:$/.test(new URL(url).protocol)) {
    throw new UserError(`REDIS_URL is not the URL of a Redis server; ${EXPECTED}. ${UNSET}`)
  }
  const answer = await ping(url, { within: 5000 })
  if (!answer.ok) {
    throw new UserError(
      `the server that REDIS_URL names, ${withoutPassword(url)}, does not respond: ${answer.reason}. Start that server. ${UNSET}`,
    )
  }
  return { url, origin: 'env', stop: async () => {} }
}

/** 2. Starts a server found on PATH as a private server. */
async function fromBinary({ env, dataDir, say, findServer, serverVersion, startServer }) {
  const binary = findServer(env)
  if (binary === undefined) return undefined
  const version = await serverVersion(binary)
  if (Number.parseInt(version, 10) < OLDEST) {
    say(`${binary} is version ${version}, but Bullpen needs ${OLDEST} or later; ignoring it.`)
    return undefined
  }
  const options = { dir: dataDir, binary, args: MEMORY_LIMIT }
  const { url, pid, stop, exited, port } = await startServer(options)
  return { url, origin: 'binary', pid, stop, exited, restart: () => startServer({ ...options, port }) }
}

/** 3. Starts a container if a Docker engine responds and the image is present or can be pulled. */
async function fromDocker({ env, dataDir, say, find, docker }) {
  if (find('docker', env) === undefined || !(await docker.answers())) return undefined
  if (!(await docker.has(IMAGE))) {
    say(`Pulling ${IMAGE}.`)
    if (!(await docker.pull(IMAGE))) {
      say(`Docker is running, but ${IMAGE} cannot be pulled; not using Docker.`)
      return undefined
    }
  }
  const { url, stop } = await docker.start({ dir: dataDir, image: IMAGE, args: MEMORY_LIMIT })
  return { url, origin: 'docker', stop }
}

/** 4. Uses the package manager if the user has agreed with a flag or a variable, or agrees when asked in the terminal. */
async function fromPackageManager(world) {
  const { env, say, ask, interactive, isRoot, mayInstall } = world
  const manager = findPackageManager({ find: (program) => world.find(program, env), isRoot, product: 'redis' })
  if (manager === undefined) return undefined
  if (!mayInstall) {
    if (!interactive) return undefined
    if (!(await ask(`Redis is not installed. Install it with \`${manager.line}\`?`))) return undefined
  }
  say(`Installing Redis with \`${manager.line}\`.`)
  if (manager.refresh) await world.run(manager.refresh[0], manager.refresh.slice(1))
  for (const [command, ...args] of manager.installs) {
    if ((await world.run(command, args)).code !== 0) continue
    // The package may have started a system service on port 6379. That service is not used, because this server is private.
    const result = await fromBinary(world)
    if (result !== undefined) return result
  }
  say(`\`${manager.line}\` did not install a working Redis.`)
  return undefined
}

/** Returns an error that explains what the user can do when there is no Redis. */
function nothingFound({ env, find, isRoot }) {
  const manager = findPackageManager({ find: (program) => find(program, env), isRoot, product: 'redis' })
  const install = manager
    ? [
        `  install Redis:               ${manager.line}`,
        '  let this script install it:  set INSTALL_REDIS=1, or: npm start -- --install-redis',
      ]
    : [`  install Redis ${OLDEST} or later, or Valkey`]
  return new UserError(
    [
      `Bullpen needs Redis but found none: REDIS_URL is not set, neither redis-server nor valkey-server is on PATH, and no Docker engine can run ${IMAGE}. Do one of these:`,
      ...install,
      '  use a running server:        set REDIS_URL=redis://HOST:PORT',
    ].join('\n'),
  )
}

export const STEPS = Object.freeze([fromEnvironment, fromBinary, fromDocker, fromPackageManager])

/**
 * Tries the steps in order and returns the first server.
 * @param {Partial<typeof machine>} [options] `dataDir` is where a private server keeps its data
 * @returns {Promise<ResolvedRedis>}
 */
export async function resolveRedis(options = {}) {
  const world = { ...machine, ...options }
  for (const step of STEPS) {
    const result = await step(world)
    if (result !== undefined) return result
  }
  throw nothingFound(world)
}
