// Helpers for this repository's own tests. This package is not published because it needs vitest and the scripts.

export { chromium, startChromium } from './chromium.ts'
export type { Backend, BackendOptions, OpenBackend } from './conformance/backend.ts'
export { brokerConformance } from './conformance/index.ts'
export { freePort } from './free-port.ts'
export { brokerModel } from './model/index.ts'
export { type ClusterNode, type PrivateCluster, privateCluster } from './private-cluster.ts'
export { privateRedis } from './private-redis.ts'
export { programEnv } from './program-env.ts'
export { promtool } from './prometheus/programs.ts'
export { amount, type Scale, seeds } from './scale.ts'
export { spawnProgram } from './spawn-program.ts'
export { storedKeys } from './stored-keys.ts'
