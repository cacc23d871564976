// Which test files `npm test` leaves to `npm run ci`: the system tests.

/**
 * Tests that take minutes together, because they run whole programs, builds or Redis Clusters, and tests that need more than Redis:
 * Prometheus, Chromium or Python. Each line is a file, or a pattern of files.
 */
export const SYSTEM_TESTS = [
  'apps/demo/src/demo.test.ts',
  'docs/orphaned-keys.test.ts',
  'docs/{,pipeline-}tutorial.test.ts',
  'docs/how-to/{dead-tasks,programs,python}.test.ts',
  'k8s/{containers,prometheus}.test.ts',
  'packages/api/src/board/board-browser.test.ts',
  'packages/api/src/unreachable-node.test.ts',
  'packages/bullmq/src/{conformance,redis}/cluster.test.ts',
  'packages/bullmq/src/{locks,redis}/hung-node.test.ts',
  'packages/bullmq/src/orphans/busy-queue.test.ts',
  'packages/client/src/browser.test.ts',
  'packages/telemetry/src/alerts/alerts.test.ts',
  'packages/telemetry/src/exposition.test.ts',
  'packages/telemetry/src/scaling/scaling-rules.test.ts',
  'packages/worker/src/{silent-redis,worker-process}.test.ts',
  'packages/worker/src/fleet-agent/remote-control.test.ts',
  'scripts/{bootstrap,loaded-modules,packages,test-next}.test.mjs',
  'scripts/platform/{dev-loop,platform}.test.mjs',
  'scripts/prometheus/server.test.mjs',
  'scripts/redis/cluster.test.mjs',
  'tools/bench/src/{enqueue/enqueue,turns/turns}-bench.test.ts',
  'tools/drill/src/{drills,environment/killed-api}.test.ts',
]

/**
 * Returns the patterns of the test files that a run with these arguments leaves out. A run that names files or tests may mean any.
 * @param {readonly string[]} args
 */
export function excludedFiles(args) {
  const isNamed = args.some((arg) => !arg.startsWith('-'))
  return isNamed || args.includes('--all') || args.includes('--full') ? [] : SYSTEM_TESTS
}
