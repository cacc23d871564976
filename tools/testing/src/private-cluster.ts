// Starts a Redis Cluster for a test file or a single test. Its nodes can be killed and started again.

export interface ClusterNode {
  readonly url: string
  readonly port: number
  /** Starts the node again on the same port and data. */
  start(): Promise<void>
  /** Sends a command to this node and returns the reply: a status line with its first character, a string, a list or null. */
  ask(...command: readonly string[]): Promise<unknown>
  kill(signal: NodeJS.Signals): void
  /** Kills the node with SIGKILL. Resolves when its process has ended. */
  crash(): Promise<void>
}

export interface PrivateCluster {
  /** The nodes, in the form that Bullpen's setting `redisUrl` accepts. */
  readonly url: string
  /** The nodes: first the masters, then the first replica of each master in the same order, and so on. */
  readonly nodes: readonly ClusterNode[]
  /** Returns the node that holds the keys with this hash tag, which is given in its braces. */
  nodeOf(tag: string): Promise<ClusterNode>
  /** Stops the nodes and deletes their data. */
  end(): Promise<void>
}

interface ClusterOptions {
  /** Defaults to 3. */
  readonly masters?: number
  /** The number of replicas per master. Defaults to 0. */
  readonly replicas?: number
  /** How long a node may be silent before the others consider it failed, in ms. Defaults to 5,000. */
  readonly nodeTimeout?: number
}

type TemporaryCluster = (name: string, options: ClusterOptions) => Promise<PrivateCluster>

/** Resolves when all nodes serve the cluster, which takes about three seconds. The caller must call `end`. */
export async function privateCluster(options: ClusterOptions = {}): Promise<PrivateCluster> {
  // The scripts are untyped JavaScript, so they are imported by URL, which the compiler does not resolve.
  const script = new URL('../../../scripts/redis/cluster.mjs', import.meta.url).href
  const { temporaryCluster } = (await import(script)) as { temporaryCluster: TemporaryCluster }
  return temporaryCluster('private-cluster', options)
}
