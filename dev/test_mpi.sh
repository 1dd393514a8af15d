#!/bin/bash
# Proves fleetrun under a real mpirun of OpenMPI, on one machine and over two, where a small agent stands
# in for ssh. Skips itself where that is not possible.
#
#   dev/test_mpi.sh
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/cluster.sh"
enter_cluster mpi 2

cat >bin/agent <<'SCRIPT'
#!/bin/sh
host=$1
shift
exec on "$host" sh -c "$*"
SCRIPT
chmod +x bin/agent
export TMPDIR=$PWD  # where OpenMPI keeps its sockets
mpi=(mpirun --allow-run-as-root --oversubscribe)
two=("${mpi[@]}" --mca plm_rsh_agent "$PWD/bin/agent")
train=(argosy train -m config.yaml)
endless=("${train[@]}" -o 'runner.pipe_command=head -n 600; sleep 1000')

run every_task_a_process on node0 "${mpi[@]}" -np 4 fleetrun --server_num=1 --worker_num=3 "${train[@]}"
expect_code 0
expect_model 'log/workerlog.0'
expect 'worker 2 has left' 'log/serverlog.0'
expect_times 'epoch: 0 done' 'log/workerlog.*' 3
expect_nobody
passed

run ranks on node0 "${mpi[@]}" -np 3 fleetrun sh -c 'echo rank $PADDLE_TRAINER_ID of $PADDLE_TRAINERS_NUM'
expect_code 0
for rank in 0 1 2; do expect "^rank $rank of 3\$"; done
passed

run ranks_that_train_by_mpi on node0 "${mpi[@]}" -np 2 fleetrun --backend=mpi "${train[@]}" -o runner.deterministic=True
expect_code 0
expect_model 'log/workerlog.0'
mv "$test/model" by_mpi
run the_same_by_shared_memory on node0 "${mpi[@]}" -np 2 fleetrun "${train[@]}" -o runner.deterministic=True
expect_code 0
diff -r by_mpi "$test/model" || failed "MPI found another model"
expect_nobody
passed

run ranks_by_mpi_on_two_hosts on node0 "${two[@]}" --host node0:2,node1:2 -np 4 fleetrun --backend=mpi "${train[@]}"
expect_code 0
expect_model 'log/workerlog.0'
expect_nobody
passed

run too_few_tasks on node0 "${mpi[@]}" -np 1 fleetrun --nproc_per_node=2 --backend=mpi "${train[@]}"
expect 'backend mpi: 2 ranks, but mpirun or srun has started 1 tasks, expected a task for each rank' 'log/workerlog.*'
passed

run a_worker_that_fails on node0 "${mpi[@]}" -np 4 fleetrun --server_num=1 --worker_num=3 \
  sh -c 'if [ "$PADDLE_TRAINER_ID" = 1 ]; then echo the cause; exit 7; fi; sleep 1000'
expect_code 7
expect 'fleetrun: worker 1 failed: exit status 7; log/workerlog.1 ends with:'
expect 'the cause'
expect_nobody
passed

run tasks_on_two_hosts on node0 "${two[@]}" --host node0:2,node1:2 -np 4 fleetrun --server_num=2 --worker_num=2 "${train[@]}"
expect_code 0
expect_model 'log/workerlog.0'
expect_times 'server . of 2 at 10.0.0.1:' 'log/serverlog.*' 2
expect 'worker 1 of 2 at 10.0.0.2:' 'log/workerlog.1'
expect_nobody
passed

run a_launcher_on_each_host on node0 "${two[@]}" --host node0,node1 -npernode 1 fleetrun --server_num=1 --worker_num=1 "${train[@]}"
expect_code 0
expect_model 'log/workerlog.0'
expect 'server 1 of 2 at 10.0.0.2:' 'log/serverlog.1'
expect 'worker 1 of 2 at 10.0.0.2:' 'log/workerlog.1'
expect_nobody
passed

run mpirun_elsewhere on head "${two[@]}" --host node0,node1 -npernode 1 fleetrun --server_num=1 --worker_num=1 "${train[@]}"
expect_code 2
expect 'OpenMPI does not say where its tasks can meet, expected --master HOST:PORT --nnodes N'
expect_nobody
run mpirun_elsewhere_with_master on head "${two[@]}" --host node0,node1 -npernode 1 \
  fleetrun --master=node0:7000 --nnodes=2 --server_num=1 --worker_num=1 "${train[@]}"
expect_code 0
expect_model 'log/workerlog.0'
expect 'server 1 of 2 at 10.0.0.2:' 'log/serverlog.1'
expect_nobody
passed

for signal in TERM KILL; do
  for hosts in node0:4 node0:2,node1:2; do
    start "mpirun_of_${hosts}_ended_by_$signal" on node0 "${two[@]}" --host $hosts -np 4 \
      fleetrun --server_num=2 --worker_num=2 "${endless[@]}"
    await grep -q 'batch_id: 5,' "$test/log/workerlog.1"
    [[ -n $(alive) ]] || failed "nobody is there to be ended"
    kill -$signal "$(pgrep -P "$started")"
    { wait "$started" || true; } 2>/dev/null
    expect_nobody
    passed
  done
done

say "all passed in $SECONDS s"
