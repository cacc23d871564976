// Handles files.digest.
import { defineHandler, type TaskContext } from '@bullpen/contract'
import { filesDigest } from '@bullpen/tasks'
import type { WorkerResources } from '../resources/index.ts'

export default defineHandler(
  filesDigest,
  import.meta.url,
  ({ input, resources, signal }: TaskContext<typeof filesDigest, WorkerResources>) =>
    resources.files.digest(input.path, signal),
)
