// Starts a Redis Cluster each of whose nodes is behind a proxy that can inject network faults.
import { eventually, type FaultProxy, faultProxy } from '@bullpen/testkit'
import { type PrivateCluster, privateCluster } from './private-cluster.ts'

export interface ProxiedCluster {
  /** The proxies, in the form that Bullpen's setting `redisUrl` accepts. The nodes also list each other by these addresses. */
  readonly url: string
  readonly nodes: PrivateCluster['nodes']
  /** The proxies, in the order of the nodes. */
  readonly proxies: readonly FaultProxy[]
  /** Closes the proxies, stops the nodes and deletes their data. */
  end(): Promise<void>
}

/** Takes about four seconds. The caller must call `end`. */
export async function proxiedCluster(options: Parameters<typeof privateCluster>[0] = {}): Promise<ProxiedCluster> {
  const { nodes, end } = await privateCluster(options)
  const proxies = await Promise.all(nodes.map(({ url }) => faultProxy(url)))
  const ports = proxies.map(({ url }) => new URL(url).port)
  await Promise.all(nodes.map((node, i) => node.ask('CONFIG', 'SET', 'cluster-announce-port', String(ports[i]))))
  await eventually(async () => {
    const listings = await Promise.all(nodes.map((node) => node.ask('CLUSTER', 'NODES')))
    return listings.every((listing) => ports.every((port) => String(listing).includes(`:${port}@`)))
  })
  return {
    url: `redis+cluster://${ports.map((port) => `127.0.0.1:${port}`).join(',')}`,
    nodes,
    proxies,
    async end() {
      await Promise.all(proxies.map((proxy) => proxy.close()))
      await end()
    },
  }
}
