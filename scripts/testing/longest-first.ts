// Starts the longest test files first. Otherwise, a run would end with one of them while the other processors are idle.
import { relative, sep } from 'node:path'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** The files that take 20 s and longer, longest first. */
const LONGEST: readonly string[] = [
  'tools/drill/src/drills.test.ts',
  'packages/testkit/src/memory/memory-broker.test.ts',
  'packages/bullmq/src/conformance/conformance.test.ts',
  'packages/bullmq/src/conformance/conformance-slots.test.ts',
  'docs/how-to/programs.test.ts',
  'packages/bullmq/src/conformance/cluster.test.ts',
  'packages/worker/src/worker-process.test.ts',
  'packages/bullmq/src/internals/index-model/commit-faults.test.ts',
  'scripts/packages.test.mjs',
  'tools/bench/src/enqueue/enqueue-bench.test.ts',
  'packages/bullmq/src/redis/silent-network.test.ts',
  'packages/sandbox/src/acts.test.ts',
  'packages/worker/src/fleet-agent/remote-control.test.ts',
  'scripts/platform/platform.test.mjs',
  'packages/bullmq/src/runs/property/runs.property.test.ts',
  'packages/bullmq/src/consumer.test.ts',
  'apps/worker/src/main.test.ts',
  'apps/api/src/main.test.ts',
  'packages/api/src/unreachable-node.test.ts',
  'packages/client/src/transports.test.ts',
  'packages/api/src/create-api.test.ts',
  'packages/sandbox/src/isolation.test.ts',
  'packages/bullmq/src/locks/lock-renewer.test.ts',
  'packages/bullmq/src/redis/cluster.test.ts',
]

/** A class, because Vitest creates the sequencer. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const { root } = this.ctx.config
    const rank = ({ moduleId }: TestSpecification): number => {
      const at = LONGEST.indexOf(relative(root, moduleId).replaceAll(sep, '/'))
      return at < 0 ? LONGEST.length : at
    }
    return (await super.sort(files)).toSorted((a, b) => rank(a) - rank(b))
  }
}
