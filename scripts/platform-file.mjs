// The note that a running platform leaves for others: where it is, which key it takes, which workers it has.
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/**
 * @typedef {object} PlatformNote
 * @property {number} pid of the process that supervises
 * @property {string} apiUrl
 * @property {string} key
 * @property {string} redisUrl
 * @property {string[]} filesRoots
 * @property {{ name: string, pid: number, url: string }[]} workers
 */

const fileIn = (home) => join(home, 'platform.json')

/** @param {string} home @param {PlatformNote} note */
export function writePlatform(home, note) {
  const draft = `${fileIn(home)}.${process.pid}`
  writeFileSync(draft, `${JSON.stringify(note, null, 2)}\n`, { mode: 0o600 }) // it holds the key
  renameSync(draft, fileIn(home)) // readers see the old note or the new one, never half of one
}

/** @param {string} home */
export const removePlatform = (home) => rmSync(fileIn(home), { force: true })

/**
 * The platform that runs in `home`; undefined when there is none, also when one was killed and left its note.
 * @param {string} home
 * @returns {Promise<PlatformNote | undefined>}
 */
export async function runningPlatform(home) {
  let note
  try {
    note = JSON.parse(readFileSync(fileIn(home), 'utf8'))
    process.kill(note.pid, 0)
    await fetch(`${note.apiUrl}/livez`, { signal: AbortSignal.timeout(2000) })
  } catch {
    return undefined
  }
  return note
}
