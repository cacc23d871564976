// Opens the example handlers' resources in a child process, where tasks run whose worker has died. A child process has the arguments
// and the environment of its worker, so the settings are the same.
import { workerConfig } from '@bullpen/config'
import { RESOURCE_SETTINGS, workerResources } from './index.ts'

export default workerResources(workerConfig(RESOURCE_SETTINGS), process.ppid)
