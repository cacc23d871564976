// The record of a running platform: where it is, which key it accepts, which workers it has. Other scripts read it.
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/**
 * @typedef {object} PlatformRecord
 * @property {number} pid of the supervising process
 * @property {string} apiUrl
 * @property {string} key
 * @property {string} redisUrl
 * @property {string[]} filesRoots
 * @property {{ name: string, pid: number, url: string }[]} workers
 */

const fileIn = (home) => join(home, 'platform.json')

/** @param {string} home @param {PlatformRecord} record */
export function writePlatform(home, record) {
  const draft = `${fileIn(home)}.${process.pid}`
  writeFileSync(draft, `${JSON.stringify(record, null, 2)}\n`, { mode: 0o600 }) // it holds the key
  renameSync(draft, fileIn(home)) // a reader sees the old record or the new one, never a part of one
}

/** @param {string} home */
export const removePlatform = (home) => rmSync(fileIn(home), { force: true })

/**
 * The platform that runs in `home`; undefined if none does, even when a killed one left its record behind.
 * @param {string} home
 * @returns {Promise<PlatformRecord | undefined>}
 */
export async function runningPlatform(home) {
  let record
  try {
    record = JSON.parse(readFileSync(fileIn(home), 'utf8'))
    process.kill(record.pid, 0)
    await fetch(`${record.apiUrl}/livez`, { signal: AbortSignal.timeout(2000) })
  } catch {
    return undefined
  }
  return record
}
