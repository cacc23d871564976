// Says what the error replies of Redis and Valkey mean. Each reply begins with its code. Codes that are not here, such as ERR, say nothing
// about the server.

/**
 * - `not_now`: the server has refused the command before it changed anything, and will accept it later
 * - `full`: the same, for a command that adds data, until there is room
 * - `never`: the server will reply the same until an operator or a developer changes something
 */
export type ReplyMeaning = 'not_now' | 'full' | 'never'

export interface ErrorReply {
  readonly means: ReplyMeaning
  /** What is wrong. The subject is the server. */
  readonly problem: string
  readonly advice: string
}

const wait = 'wait until it is ready'

export const ERROR_REPLIES = {
  READONLY: {
    means: 'not_now',
    problem: 'is a read-only replica',
    advice:
      'connect to the primary, or list the nodes of a Redis Cluster in a URL such as redis+cluster://HOST:PORT,HOST:PORT',
  },
  NOREPLICAS: {
    means: 'not_now',
    problem: 'refuses writes, because fewer replicas are connected than min-replicas-to-write requires (NOREPLICAS)',
    advice: 'bring the replicas back, or lower min-replicas-to-write',
  },
  MISCONF: {
    means: 'not_now',
    problem: 'refuses writes, because it cannot save its data to its disk (MISCONF)',
    advice: "read the server's log, and free or repair the disk",
  },
  MASTERDOWN: {
    means: 'not_now',
    problem: 'is a replica that has lost its primary (MASTERDOWN)',
    advice: 'connect to the primary',
  },
  LOADING: { means: 'not_now', problem: 'is loading its data (LOADING)', advice: wait },
  BUSY: {
    means: 'not_now',
    problem: 'is busy with a long-running script (BUSY)',
    advice: 'wait, then look for the script in SLOWLOG',
  },
  CLUSTERDOWN: {
    means: 'not_now',
    problem: 'belongs to a cluster in which no node serves some hash slots (CLUSTERDOWN)',
    advice: 'bring the failed nodes back',
  },
  TRYAGAIN: { means: 'not_now', problem: 'is moving a hash slot to another node (TRYAGAIN)', advice: wait },
  // A server that becomes a replica ends the commands that block.
  UNBLOCKED: { means: 'not_now', problem: 'has become a replica (UNBLOCKED)', advice: 'connect to the primary' },
  // Of Valkey, during a failover: the primary is another server now.
  REDIRECT: { means: 'not_now', problem: 'is no longer the primary (REDIRECT)', advice: 'connect to the primary' },
  OOM: {
    means: 'full',
    problem: 'is full: its memory has reached maxmemory (OOM)',
    advice: 'delete tasks, or raise maxmemory',
  },
  NOAUTH: {
    means: 'never',
    problem: 'requires a password (NOAUTH)',
    advice: 'set it in the URL, as in redis://USER:PASSWORD@HOST:PORT',
  },
  WRONGPASS: {
    means: 'never',
    problem: 'refuses the user or the password (WRONGPASS)',
    advice: 'correct them in the URL',
  },
  NOPERM: {
    means: 'never',
    problem: 'does not permit the user to use a command, key or channel (NOPERM)',
    advice: 'give the user the permissions that the guide "Configure Redis" lists',
  },
  DENIED: {
    means: 'never',
    problem: 'accepts only local connections, because it is in protected mode (DENIED)',
    advice: 'set a password, or bind the server to an address',
  },
  NOPROTO: { means: 'never', problem: 'does not know the protocol version (NOPROTO)', advice: 'upgrade the server' },
  MOVED: {
    means: 'never',
    problem: 'is a cluster node',
    advice: "list the cluster's nodes in a URL such as redis+cluster://HOST:PORT,HOST:PORT",
  },
  CROSSSLOT: {
    means: 'never',
    problem: 'received a command whose keys are in several hash slots (CROSSSLOT)',
    advice: 'use queues with a hash tag',
  },
  WRONGTYPE: {
    means: 'never',
    problem: 'holds data of another type under a key (WRONGTYPE)',
    advice: 'look for another program that uses the namespace',
  },
} as const satisfies Readonly<Record<string, ErrorReply>>

export type ErrorCode = keyof typeof ERROR_REPLIES

/** Returns the code of an error with which the server has replied, if the code is in the table. */
export function errorCode(error: unknown): ErrorCode | undefined {
  if (!(error instanceof Error)) return undefined
  const code = error.message.slice(0, error.message.indexOf(' '))
  return Object.hasOwn(ERROR_REPLIES, code) ? (code as ErrorCode) : undefined
}

/** Returns whether the server has refused the command before it changed anything, and will accept it later. */
export function isRefusedForNow(error: unknown): boolean {
  const code = errorCode(error)
  return code !== undefined && ERROR_REPLIES[code].means === 'not_now'
}
