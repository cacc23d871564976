// Queries the package registry for versions of BullMQ, and installs one of them into a separate directory.
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { runBounded } from '../system/bounded.mjs'
import { UserError } from '../system/user-error.mjs'

const LOOKUP_TIMEOUT_MS = 60_000
const INSTALL_TIMEOUT_MS = 180_000

/**
 * Returns the exact version that the registry has for a version or for a tag such as `latest`.
 * @param {string} wanted
 * @param {AbortSignal} [signal]
 */
export async function registryVersion(wanted, signal) {
  const answer = await npm(['view', `bullmq@${wanted}`, 'version', '--json'], { timeoutMs: LOOKUP_TIMEOUT_MS, signal })
  if (answer.code !== 0) throw failure(answer, wanted)
  // For a range, npm prints every matching version in ascending order.
  const found = [answer.stdout === '' ? [] : JSON.parse(answer.stdout)].flat().at(-1)
  if (found === undefined) throw unknownVersion(wanted)
  return found
}

/**
 * Installs BullMQ, with its dependencies below its own directory and without its peers. `directory` is created and must be outside
 * of any workspace. Returns the directory of the package.
 * @param {string} version
 * @param {string} directory
 * @param {AbortSignal} [signal]
 */
export async function installBullmq(version, directory, signal) {
  mkdirSync(directory, { recursive: true })
  writeFileSync(join(directory, 'package.json'), '{"private":true}\n')
  const args = ['install', `bullmq@${version}`, '--install-strategy=nested', '--omit=peer', '--ignore-scripts']
  const answer = await npm(args, { timeoutMs: INSTALL_TIMEOUT_MS, signal, cwd: directory })
  if (answer.code !== 0) throw failure(answer, version)
  return join(directory, 'node_modules/bullmq')
}

/** Runs npm without retries, which would only delay the message that the registry cannot be reached. */
function npm(args, options) {
  return runBounded('npm', [...args, '--no-audit', '--no-fund', '--loglevel=error', '--fetch-retries=0'], options)
}

const UNREACHABLE =
  /\b(ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|EHOSTUNREACH|ENETUNREACH|ETIMEDOUT|ERR_SOCKET_TIMEOUT)\b/

function failure({ code, stdout, stderr, timedOut }, wanted) {
  const text = `${stdout}\n${stderr}`.trim()
  if (code === 127) return new UserError('npm is not on PATH. It comes with Node: https://nodejs.org')
  if (/\b(E404|ETARGET)\b/.test(text)) return unknownVersion(wanted)
  const why = timedOut ? 'npm did not respond in time' : UNREACHABLE.exec(text)?.[1]
  if (why !== undefined) {
    return new UserError(`the package registry cannot be reached (${why}); check the network with: npm ping`)
  }
  return new UserError(`npm failed:\n${text}`)
}

function unknownVersion(wanted) {
  return new UserError(
    `the registry has no version "${wanted}" of bullmq; list its versions with: npm view bullmq versions`,
  )
}
