// Finds the connections of a queue's workers by the names that BullMQ gives to them.

export interface WorkerConnection {
  /** The Worker's own name, or ''. */
  readonly name: string
  /** The host and the port. */
  readonly address: string
}

interface QueueName {
  readonly prefix: string
  readonly name: string
}

/**
 * Returns the connections of a queue's workers in a reply to CLIENT LIST. A Worker names its blocking connection `PREFIX:` and the name of
 * the queue in base64, and then `:w:` and its own name if it has one. In a cluster, it may have a connection of that name to each node, so
 * only the node of the queue is asked.
 */
export function workerConnections(clients: string, { prefix, name: queue }: QueueName): readonly WorkerConnection[] {
  const own = `${prefix}:${Buffer.from(queue).toString('base64')}`
  return [...clients.matchAll(/ addr=(\S+) .*? name=(\S+)/g)].flatMap(([, address = '', name = '']) =>
    name === own || name.startsWith(`${own}:w:`) ? [{ address, name: name.slice(`${own}:w:`.length) }] : [],
  )
}

/**
 * Returns a function that counts the connections of a queue's workers, or returns undefined if the server did not permit CLIENT LIST.
 */
export function countWorkers(clients: string | undefined): (queue: QueueName) => number | undefined {
  return (queue) => (clients === undefined ? undefined : workerConnections(clients, queue).length)
}
