// Deletes every key of a namespace.
import { askRedis } from './probe.mjs'

/** How many keys one command examines, which takes Redis a few ms. */
const PAGE_SIZE = 5000

/**
 * No process may use the namespace any more. Keys of other namespaces are examined, so a call takes time in proportion to all keys of the
 * server.
 * @param {string} url
 * @param {string} namespace without characters that have a meaning in a pattern of Redis
 */
export async function deleteNamespace(url, namespace) {
  // What follows the namespace in a hash tag is a queue (`.`), or a group or a run (`:`).
  const prefixes = ['}', '.', ':'].map((end) => `{${namespace}${end}`)
  let cursor = '0'
  do {
    const [next, page] = await ask(url, ['SCAN', cursor, 'MATCH', `{${namespace}*`, 'COUNT', `${PAGE_SIZE}`])
    const keys = page.filter((key) => prefixes.some((prefix) => key.startsWith(prefix)))
    if (keys.length > 0) await ask(url, ['UNLINK', ...keys])
    cursor = next
  } while (cursor !== '0')
}

async function ask(url, command) {
  const reply = await askRedis(url, command)
  if (typeof reply === 'string' && reply.startsWith('-')) throw new Error(`${command[0]}: ${reply.slice(1)}`)
  return reply
}
