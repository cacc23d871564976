// Asks a program over HTTP for its status, such as whether it is ready.
import { get } from 'node:http'

/** A program of a busy machine responds late. One that is not running refuses the connection at once. */
const TIMEOUT_MS = 10_000

/**
 * Resolves with the status of the response, or with undefined if there is none within ten seconds. The connection is closed afterwards,
 * which that of a fetch is only after a while.
 *
 * @param {string} url
 * @returns {Promise<number | undefined>}
 */
export function statusOf(url) {
  return new Promise((resolve) => {
    const request = get(url, { agent: false, signal: AbortSignal.timeout(TIMEOUT_MS) }, (response) => {
      response.on('error', () => {}) // the timeout also ends a response that stops in the middle
      response.on('close', () => resolve(response.statusCode))
      response.resume()
    })
    request.on('error', () => resolve(undefined))
  })
}
