// A process that may lead its namespace, and that is killed once the first tasks that it has cancelled have ended.
import { openPatientBroker } from '../broker/patient-broker.fixture.ts'
import { silent } from '../setup.fixture.ts'

const [redisUrl = '', namespace = ''] = process.argv.slice(2)
const onCancelled = (): void => void process.kill(process.pid, 'SIGKILL')
openPatientBroker({ redisUrl, namespace, queues: ['rig'], sizeLimit: 10_000, log: silent, onCancelled })
