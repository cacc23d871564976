// Before a namespace is used, checks that the server can run Bullpen's scripts and that this version of Bullpen can read the
// namespace's data. Registers the queues that are about to be used.
//
// Redis may lose its data later, and a newer Bullpen may then claim the namespace. The check is therefore repeated together with the
// registration of the queues (leader/registration.ts).
import { BullpenError } from '@bullpen/contract'
import { legacyKeys, queueKeys, SCHEMA_VERSION, schemaKey } from './keys.ts'
import { type RegisteredQueue, registerQueues } from './leader/queue-registry.ts'
import { unsupportedServer } from './redis/server/server-version.ts'
import { type Commander, runScript } from './scripts/script.ts'
import { claimNamespaceScript, isLegacyScript } from './store/scripts.ts'

/** How stores and queries reach the data of a namespace. */
export interface RedisAccess {
  readonly redis: Commander
  readonly namespace: string
  /** Runs a command once the namespace is known to be compatible, and limits how long the caller waits for the reply. */
  readonly call: <T>(run: () => Promise<T>) => Promise<T>
}

export interface SchemaGuard {
  /**
   * Returns undefined once the namespace is known to be compatible. Until then, returns a promise, which rejects with
   * `unsupported_redis`, `incompatible_schema` or Redis's error if the check fails. The next call then checks again. A check also
   * registers the queues for the leader. It takes four round trips, or six for a new namespace.
   */
  check(): Promise<void> | undefined
  /**
   * Registers the queues again. Does nothing until a check has succeeded. Takes two round trips. If the namespace's schema version is
   * missing or has changed, checks the namespace again and rejects with the same errors as `check`.
   */
  repeat(): Promise<void>
}

/**
 * Creates a namespace's guard. `queues` are the queues that are checked for another version's data. `registered` are the queues
 * to register, and defaults to the same queues without a retention.
 */
export function createSchemaGuard(
  redis: Commander,
  namespace: string,
  queues: readonly string[],
  registered: readonly RegisteredQueue[] = queues.map((name) => ({ name })),
): SchemaGuard {
  let isCompatible = false
  /** Whether any check has succeeded. */
  let isUsed = false
  let checking: Promise<void> | undefined

  const check = (): Promise<void> | undefined => {
    if (isCompatible) return undefined
    checking ??= checkSchema(redis, namespace, queues)
      .then(() => registerQueues(redis, namespace, registered, { replaces: true }))
      .then(() => {
        isCompatible = true
        isUsed = true
      })
      .finally(() => {
        checking = undefined
      })
    return checking
  }

  return {
    check,
    async repeat() {
      if (!isUsed) return
      if (isCompatible && (await registerQueues(redis, namespace, registered, { replaces: false }))) return
      isCompatible = false
      await check()
    },
  }
}

/** Which Bullpen has written an older schema. */
const WRITERS: Readonly<Record<number, string>> = { 1: 'Bullpen 0.1.0', 2: 'an earlier build of Bullpen 0.2.0' }

async function checkSchema(redis: Commander, namespace: string, queues: readonly string[]): Promise<void> {
  const problem = unsupportedServer(await serverInfo(redis))
  if (problem !== undefined) throw new BullpenError('unsupported_redis', problem)
  const version = Number((await redis.get(schemaKey(namespace))) ?? (await claim(redis, namespace, queues)))
  if (version === SCHEMA_VERSION) return
  const needs = `this version requires schema ${SCHEMA_VERSION}`
  throw new BullpenError(
    'incompatible_schema',
    version < SCHEMA_VERSION
      ? `namespace '${namespace}' was written by ${WRITERS[version] ?? 'an older Bullpen'} (schema ${version}); ${needs}: use another namespace, or drain this one with that version and delete its keys`
      : `namespace '${namespace}' was written by a newer Bullpen (schema ${version}); ${needs}: upgrade this process, or use another namespace`,
  )
}

/** Returns the output of `INFO server`, or '' if the Redis user is not permitted to run INFO, without which producers also work. */
function serverInfo(redis: Commander): Promise<string> {
  return redis.info('server').catch((err: unknown) => {
    if (err instanceof Error && err.message.startsWith('NOPERM')) return ''
    throw err
  })
}

/**
 * Processes that claim a namespace at the same time receive the same version, because a new namespace does not contain any data
 * of 0.1.0.
 */
async function claim(redis: Commander, namespace: string, queues: readonly string[]): Promise<string> {
  const answers = await Promise.all(queues.map((queue) => isLegacyQueue(redis, namespace, queue)))
  const keys = { schema: schemaKey(namespace), legacyFleet: legacyKeys(namespace, '').fleet }
  const hasLegacyQueue = answers.includes(true) ? '1' : ''
  return runScript(redis, claimNamespaceScript, keys, { version: SCHEMA_VERSION, hasLegacyQueue })
}

/** The type of backoff in the options of the jobs of 0.1.0. */
const LEGACY_BACKOFF_TYPE = 'bullpen'

async function isLegacyQueue(redis: Commander, namespace: string, queue: string): Promise<boolean> {
  const keys = queueKeys(namespace, queue)
  const [switches, cancelFeeds] = legacyKeys(namespace, queue).queue
  const args = { base: keys.base, backoffType: LEGACY_BACKOFF_TYPE }
  return (await runScript(redis, isLegacyScript, { ...keys, switches, cancelFeeds }, args)) === 1
}
