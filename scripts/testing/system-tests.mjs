// Which test files `npm test` leaves to `npm run ci`: the system tests.

/**
 * Tests that take minutes together, because they start and kill many processes, or run whole programs, builds or Redis Clusters, and tests
 * that need more than Redis: Prometheus, Chromium or Python. Each line is a file, or a pattern of files.
 */
export const SYSTEM_TESTS = [
  'apps/api/src/mutated-requests.test.ts',
  'apps/demo/src/demo.test.ts',
  'apps/{api,worker}/src/main.test.ts',
  'docs/orphaned-keys.test.ts',
  'docs/{,pipeline-}tutorial.test.ts',
  'docs/how-to/{dead-tasks,programs,python}.test.ts',
  'k8s/{containers,prometheus}.test.ts',
  'packages/api/src/board/board-browser.test.ts',
  'packages/api/src/{follow-log-level,unreachable-node}.test.ts',
  'packages/bullmq/src/cancel/by-filter-processes.test.ts',
  'packages/bullmq/src/{conformance,redis}/cluster.test.ts',
  'packages/bullmq/src/internals/index-model/commit-faults.test.ts',
  'packages/bullmq/src/internals/script-fuzz/long-fuzz.model.test.ts',
  'packages/bullmq/src/leader/dead-task-changer.test.ts',
  'packages/bullmq/src/{locks,redis}/hung-node.test.ts',
  'packages/bullmq/src/redis/silent-network.test.ts',
  'packages/bullmq/src/locks/lock-renewer.test.ts',
  'packages/bullmq/src/orphans/busy-queue.test.ts',
  'packages/bullmq/src/store/replicated-adds{,-cluster}.test.ts',
  'packages/cli/src/{fleet-end-to-end,unwritable-output}.test.ts',
  'packages/client/src/{browser,portability}.test.ts',
  'packages/sandbox/src/{acts,forged,isolation,open-isolator,processes,runner,wasm-wrappers}.test.ts',
  'packages/telemetry/src/alerts/alerts.test.ts',
  'packages/telemetry/src/exposition.test.ts',
  'packages/telemetry/src/scaling/scaling-rules.test.ts',
  'packages/worker/src/{first-start,inline-acts,memory-hog-worker,online-group,silent-redis,worker-process}.test.ts',
  'packages/worker/src/{event-loop/event-loop-monitor,fleet-agent/remote-control}.test.ts',
  'scripts/{bootstrap,loaded-modules,new-task,packages,test,test-next}.test.mjs',
  'scripts/platform/{dev-loop,platform}.test.mjs',
  'scripts/prometheus/server.test.mjs',
  'scripts/redis/cluster.test.mjs',
  'scripts/testing/reporter.test.mjs',
  'tools/bench/src/{enqueue/enqueue,turns/turns,wait/wait,worker/worker}-bench.test.ts',
  'tools/drill/src/{drills,environment/killed-api}.test.ts',
  'tools/testing/src/leaks/leak-detector.test.ts',
]

/**
 * Returns the patterns of the test files that a run with these arguments leaves out. A run that names files or tests may mean any.
 * @param {readonly string[]} args
 */
export function excludedFiles(args) {
  const isNamed = args.some((arg) => !arg.startsWith('-'))
  return isNamed || args.includes('--all') || args.includes('--full') ? [] : SYSTEM_TESTS
}
