// Reads and writes the record of a running platform: where it is, which API key it accepts, and which workers it has. Other
// scripts read this record.
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { statusOf } from '../system/http-status.mjs'

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
  renameSync(draft, fileIn(home)) // a reader sees either the old record or the new one, but never part of one
}

/** @param {string} home */
export const removePlatform = (home) => rmSync(fileIn(home), { force: true })

/**
 * Returns the platform that is running in `home`, or undefined if none is, even if a killed platform left its record behind.
 * @param {string} home
 * @returns {Promise<PlatformRecord | undefined>}
 */
export async function runningPlatform(home) {
  let record
  try {
    record = JSON.parse(readFileSync(fileIn(home), 'utf8'))
    process.kill(record.pid, 0)
  } catch {
    return undefined
  }
  return (await statusOf(`${record.apiUrl}/livez`)) === undefined ? undefined : record
}
