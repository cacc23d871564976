// Finds the Redis to use, or starts one: REDIS_URL, a server on PATH, Docker, the package manager, or says what to do.
import { createInterface } from 'node:readline/promises'
import { findPackageManager } from './package-manager.mjs'
import { findProgram, run } from './programs.mjs'
import { engineAnswers, IMAGE, imageIsHere, pullImage, startContainer } from './redis-docker.mjs'
import { pingRedis, withoutPassword } from './redis-probe.mjs'
import { findServerBinary, startRedisServer } from './redis-server.mjs'
import { UserError } from './user-error.mjs'

export { pingRedis } from './redis-probe.mjs'
export { startRedisServer } from './redis-server.mjs'

/**
 * `exited` and `restart` (on the same port and data) are there for a server of our own.
 * @typedef {{ url: string, origin: 'env' | 'binary' | 'docker', stop: () => Promise<void>, pid?: number,
 *   exited?: () => Promise<void>, restart?: () => Promise<{ stop: () => Promise<void>, exited: () => Promise<void> }> }} ResolvedRedis
 * `stop` ends what was started here, and does nothing to a server that somebody else runs.
 */

const OLDEST = 7 // the first Redis with listpacks; Valkey begins at 7.2

/** Everything outside that a step may touch; tests hand in their own. */
const machine = {
  env: process.env,
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

/** Seen by the user, but on stderr: stdout may be somebody's data. */
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

/** 1. The server that the user names. One that does not answer is an error: another one would hold other tasks. */
async function fromEnvironment({ env, ping }) {
  const url = env.REDIS_URL
  if (url === undefined || url === '') return undefined
  if (!URL.canParse(url) || !/^rediss?:$/.test(new URL(url).protocol)) {
    throw new UserError('REDIS_URL is not a URL like redis://127.0.0.1:6379')
  }
  const answer = await ping(url, { within: 5000 })
  if (!answer.ok) throw new UserError(`REDIS_URL is set, but ${withoutPassword(url)} does not answer: ${answer.reason}`)
  return { url, origin: 'env', stop: async () => {} }
}

/** 2. A server on PATH, started for us alone. */
async function fromBinary({ env, dataDir, say, findServer, serverVersion, startServer }) {
  const binary = findServer(env)
  if (binary === undefined) return undefined
  const version = await serverVersion(binary)
  if (Number.parseInt(version, 10) < OLDEST) {
    say(`${binary} is version ${version}, and Bullpen needs ${OLDEST} or later: looking further.`)
    return undefined
  }
  const { url, pid, stop, exited, port } = await startServer({ dir: dataDir, binary })
  return { url, origin: 'binary', pid, stop, exited, restart: () => startServer({ dir: dataDir, binary, port }) }
}

/** 3. A container, if an engine answers and the image is here or can be had. */
async function fromDocker({ env, dataDir, say, find, docker }) {
  if (find('docker', env) === undefined || !(await docker.answers())) return undefined
  if (!(await docker.has(IMAGE))) {
    say(`Pulling ${IMAGE}.`)
    if (!(await docker.pull(IMAGE))) {
      say(`Docker answers, but ${IMAGE} can't be pulled: looking further.`)
      return undefined
    }
  }
  const { url, stop } = await docker.start({ dir: dataDir, image: IMAGE })
  return { url, origin: 'docker', stop }
}

/** 4. The package manager: with consent on a terminal, by itself as root where nobody can be asked. */
async function fromPackageManager(world) {
  const { env, say, ask, interactive, isRoot } = world
  const manager = findPackageManager({ find: (program) => world.find(program, env), isRoot })
  if (manager === undefined) return undefined
  if (interactive) {
    if (!(await ask(`There is no Redis here. Install it with \`${manager.line}\`?`))) return undefined
  } else {
    if (!isRoot) return undefined
    say(`There is no Redis here: installing it with \`${manager.line}\`.`)
  }
  if (manager.refresh) await world.run(manager.refresh[0], manager.refresh.slice(1))
  for (const [command, ...args] of manager.installs) {
    if ((await world.run(command, args)).code !== 0) continue
    // The package may run a service of its own on 6379. That one is the system's; ours is private all the same.
    const result = await fromBinary(world)
    if (result !== undefined) return result
  }
  say(`\`${manager.line}\` did not bring a Redis that works.`)
  return undefined
}

/** 5. Nothing: what the user can do about it. */
function nothingFound({ env, find, isRoot }) {
  const manager = findPackageManager({ find: (program) => find(program, env), isRoot })
  const install = manager ? `install it:\n\n    ${manager.line}\n\n` : `install Redis ${OLDEST} or later, `
  return new UserError(
    `Bullpen needs Redis, and none was found: no REDIS_URL, no redis-server or valkey-server on PATH, ` +
      `no Docker engine with ${IMAGE}.\nEither ${install}or name one: REDIS_URL=redis://HOST:PORT`,
  )
}

export const STEPS = Object.freeze([fromEnvironment, fromBinary, fromDocker, fromPackageManager])

/**
 * Goes through the steps in their order and returns the first server that one of them has.
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
