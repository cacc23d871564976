// Handles files.digest.
import { defineHandler, type TaskContext } from '@bullpen/contract'
import { filesDigest } from '@bullpen/tasks'
import type { WorkerResources } from '../resources/index.ts'

export default defineHandler(
  filesDigest,
  import.meta.url,
  async ({ input, resources, signal, fencingToken }: TaskContext<typeof filesDigest, WorkerResources>) => ({
    path: input.path,
    ...(await resources.files.digest(input.path, signal)),
    worker: resources.worker.name,
    starts: fencingToken,
  }),
)
