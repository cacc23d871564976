// Runs Redis in a container through the docker command line, for machines that have Docker but no redis-server.
import { createHash } from 'node:crypto'
import { mkdirSync, realpathSync } from 'node:fs'
import { run } from '../system/programs.mjs'
import { UserError } from '../system/user-error.mjs'
import { pingRedis } from './probe.mjs'
import { settingsAsArguments } from './server.mjs'

export const IMAGE = 'redis:8'

/** Protected mode would reject connections from outside the container. The port is published only on loopback. */
export const CONTAINER_COMMAND = ['redis-server', ...settingsAsArguments(), '--protected-mode', 'no']

/** Returns whether a Docker engine responds within 5 s. */
export const engineAnswers = async () =>
  (await run('docker', ['version', '--format', '{{.Server.Version}}'], { timeout: 5000 })).code === 0

export const imageIsHere = async (image) =>
  (await run('docker', ['image', 'inspect', image], { timeout: 10_000 })).code === 0
export const pullImage = async (image) =>
  (await run('docker', ['pull', '--quiet', image], { timeout: 300_000 })).code === 0

/**
 * Starts a container on `dir`, published on a free loopback port, after removing an earlier container of the same
 * directory.
 * @param {{ dir: string, image: string, args?: readonly string[] }} options
 */
export async function startContainer({ dir, image, args = [] }) {
  mkdirSync(dir, { recursive: true })
  const home = realpathSync(dir)
  const name = `bullpen-redis-${createHash('sha256').update(home).digest('hex').slice(0, 12)}`
  const stop = async () => {
    await run('docker', ['stop', '--time', '20', name])
    await run('docker', ['rm', '--force', name])
  }
  await stop()
  const owner = process.getuid === undefined ? [] : ['--user', `${process.getuid()}:${process.getgid()}`]
  const flags = ['--detach', '--name', name, '--publish', '127.0.0.1::6379', '--volume', `${home}:/data`, ...owner]
  const started = await run('docker', ['run', ...flags, image, ...CONTAINER_COMMAND, ...args])
  if (started.code !== 0) throw new UserError(`docker could not start ${image}: ${started.stderr.trim()}`)
  const { stdout } = await run('docker', ['port', name, '6379/tcp'])
  const url = `redis://127.0.0.1:${Number(stdout.trim().split('\n')[0]?.split(':').at(-1))}`
  const answer = await pingRedis(url, { within: 20_000 })
  if (!answer.ok) {
    const { stdout: out, stderr } = await run('docker', ['logs', '--tail', '12', name])
    await stop()
    throw new UserError(
      `${image} did not respond in its container at ${url}: ${answer.reason}\n${out}${stderr}`.trimEnd(),
    )
  }
  return { url, stop }
}
