// Opens the example handlers' resources where isolated tasks run: in a thread of the worker or in a child process. Both have the arguments
// and the environment of the worker, so the settings are the same.
import { isMainThread } from 'node:worker_threads'
import { workerConfig } from '@bullpen/config'
import { RESOURCE_SETTINGS, workerResources } from './index.ts'

// A thread shares the worker's process, and a child process has it as its parent.
export default workerResources(workerConfig(RESOURCE_SETTINGS), isMainThread ? process.ppid : process.pid)
